"""The picture of fusion: its boxes and frames, what each edge says, and static pages."""

import json

import pytest

from dlcompiler import graph
from dlcompiler.bench.graphs import conv_bn_relu
from dlcompiler.graph import builders, op
from dlcompiler.graph.passes.fusion import RULES
from dlcompiler.graph.passes.pipeline import optimize
from dlcompiler.views.graphs.blocks import FEW_BOXES, blocks_of
from dlcompiler.views.graphs.fused_graph import fused_graph, has_kernels, unfused
from dlcompiler.views.graphs.fusion_html import fusion_parts
from dlcompiler.views.graphs.fusion_picture import (
    LEVELS,
    Shown,
    fusion_picture,
    nodes_shown,
    usual_level,
)
from dlcompiler.views.graphs.fusion_scene import arena_scene, decision_table, times_scene
from dlcompiler.views.graphs.pass_steps import pass_steps, step_facts
from tests.fusion_networks import chain, residual
from tests.graph.random_graphs import RandomGraph
from tests.share import share_of

HOSTILE = '"><img src=x onerror=alert(1)>\n' + "y" * 10_000


def analysed(module, level=3):
    changes = []
    after = optimize(module, level, observers=[changes.append])
    return fused_graph(changes[-1].before, after), changes


@pytest.fixture(scope="module")
def small():
    """A convolution, a batch norm and a ReLU, whose factors stay."""
    return analysed(conv_bn_relu().bound, 2)


@pytest.fixture(scope="module")
def resnet():
    return analysed(residual())


def test_a_region_holds_the_calls_of_a_kernel(small, golden):
    found, _ = small
    picture = fusion_picture(found)
    (frame,) = picture["frames"]
    inside = [node for node in picture["nodes"] if node["kernel"] == frame["kernel"]]
    assert len(inside) == len(found.kernels[0].nodes) > 2
    for node in inside:
        assert frame["x"] <= node["x"]
        assert node["x"] + node["w"] <= frame["x"] + frame["w"]
        assert frame["y"] <= node["y"]
        assert node["y"] + node["h"] <= frame["y"] + frame["h"]
    lines = [f"{picture['summary']} {picture['level']}"]
    lines += [f"{e['kind']}: {e['text']}" for e in picture["edges"]]
    lines += [" | ".join(map(str, row)) for row in decision_table(found.verdicts)["rows"]]
    lines += [f"{node['key']}: {'; '.join(node['lines'])}" for node in picture["nodes"]]
    golden("small", "\n".join(lines) + "\n")


def test_each_edge_has_its_verdict(resnet):
    found, _ = resnet
    known = {d.subject: d for d in found_log(resnet)}
    for edge in found.edges:
        a, b = found.nodes[edge.source], found.nodes[edge.target]
        assert (edge.verdict is None) == a.is_input
        if edge.verdict is not None:
            decision = known[a.name, b.name]
            assert edge.verdict.is_fused == (a.kernel == b.kernel) == (decision.verdict == "fused")
            assert edge.verdict.rule in RULES
            assert edge.verdict.bytes == decision.effect.bytes
    assert len(found.verdicts) == len(known)


def found_log(analysis):
    return [d for d in analysis[1][-1].after.log if d.made_by == "fuse_ops"]


def test_a_large_model_is_readable_at_first_look(resnet):
    found, _ = resnet
    assert usual_level(found) == "blocks"
    names = [block.name for block in blocks_of(found)]
    assert names[:2] == ["stage1_unit1", "stage1_unit2"]
    assert len(names) == 16
    assert blocks_of(found)[2].like == "stage1_unit2"
    assert len(fusion_picture(found)["nodes"]) <= FEW_BOXES


def test_a_block_opens_into_regions(resnet):
    found, _ = resnet
    picture = fusion_picture(found, Shown("blocks", frozenset({"block 0"})))
    kinds = [frame["kind"] for frame in picture["frames"]]
    assert kinds == ["block", *["kernel"] * 3]
    block, *kernels = picture["frames"]
    assert all(block["x"] <= each["x"] and block["y"] <= each["y"] for each in kernels)
    closed = Shown("blocks", frozenset({"block 0", f"kernel {kernels[0]['kernel']}"}))
    assert len(fusion_picture(found, closed)["frames"]) == 3


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_shows_every_call(resnet, level):
    found, _ = resnet
    picture = fusion_picture(found, Shown(level))
    words = " ".join(node["words"] for node in picture["nodes"])
    assert all(node.name in words for node in found.nodes)
    assert nodes_shown(found, Shown(level)) == len(picture["nodes"])
    verdicts = [n for edge in picture["edges"] for n in edge["verdicts"]]
    assert len(set(verdicts)) == len(verdicts)
    if level == "calls":
        assert sorted(verdicts) == list(range(len(found.verdicts)))
    json.dumps(picture)


def test_a_chain_without_names_is_cut_into_equal_parts():
    found, _ = analysed(chain(200))
    sizes = {len(block.kernels) for block in blocks_of(found)}
    assert len(fusion_picture(found, Shown("blocks"))["nodes"]) <= FEW_BOXES + 1
    assert max(sizes) - min(sizes) <= max(sizes)


def test_unnamed_calls_between_those_of_a_block_belong_to_it():
    found, _ = analysed(builders.transformer().bound)
    assert {"block0", "block1"} <= {block.name for block in blocks_of(found)}


def test_weights_are_notes_and_bound_parameters_are_inputs():
    x, c = graph.var("x", (4, 4)), graph.var("c", (4, 4))
    weight = (
        graph.const([[1.0] * 4] * 4) if hasattr(graph, "const") else graph.Constant([[1.0] * 4] * 4)
    )
    module = graph.Module.from_expr(
        graph.Function((x, c), op.add(op.nn.dense(x, op.cast(weight, dtype="float32")), c))
    )
    found, _ = analysed(module)
    assert [node.name for node in found.nodes if node.is_input] == ["x", "c"]
    assert sum(node.weights for node in found.nodes) == 1


def test_a_module_that_is_fused_can_be_taken_apart():
    module = builders.lenet().bound
    after = optimize(module)
    assert has_kernels(after)
    apart = unfused(after)
    assert not has_kernels(apart)
    found, direct = fused_graph(apart, after), analysed(module)[0]
    assert [k.name for k in found.kernels] == [k.name for k in direct.kernels]
    assert len(found.verdicts) == len(direct.verdicts)


def test_a_wish_is_shown_at_its_edge():
    module = builders.lenet().bound
    found, _ = analysed(graph.keep_apart(module, "conv1", "conv1_add"))
    verdict = next(v for v in found.verdicts if (v.a, v.b) == ("conv1", "conv1_add"))
    assert (verdict.wish, verdict.is_fused, verdict.rule) == ("keep apart", False, "kept apart")
    assert verdict.asked == "keep them apart"
    texts = [edge["text"] for edge in fusion_picture(found)["edges"]]
    assert any("You asked to keep them apart." in text for text in texts)


def test_branches_have_no_plan_and_a_reason():
    x = graph.var("x", (2,))
    test = op.greater(op.sum(x), 0.0)
    module = graph.Module.from_expr(graph.If(test, op.exp(x, name="yes"), op.sqrt(x, name="no")))
    found, _ = analysed(module)
    assert found.plan is None
    assert "branch" in found.why_no_plan
    assert [n.kernel for n in found.nodes if n.name == "if"] == [None]
    fusion_picture(found)


@pytest.mark.parametrize("level", LEVELS)
def test_hostile_names_are_text_and_short(level, parsed):
    x = graph.var("x", (2,))
    found, changes = analysed(
        graph.Module.from_expr(op.sqrt(op.exp(x, name=HOSTILE), name=f"b{HOSTILE}"))
    )
    shown = Shown(level)
    text = json.dumps(fusion_picture(found, shown))
    assert len(text) < 8_000
    for part in fusion_parts(found, shown, pass_steps(changes)).values():
        parsed(part)
        assert "<img src=x" not in part


def test_what_the_passes_did(resnet):
    _, changes = resnet
    steps = {step.name: step for step in pass_steps(changes)}
    assert steps["infer_types"].effect == "changed nothing"
    assert steps["fuse_ops"].effect == "65 fused, 68 not fused"
    (label, value), *_ = step_facts(steps["fuse_ops"])
    assert label == "conv0 → relu0: fused"
    assert value == "relu0 needs only the element of conv0 that was just computed"


def test_the_arena_shows_every_value_at_its_address(resnet):
    found, _ = resnet
    scene = arena_scene(found.plan)
    bars = [mark for mark in scene["marks"] if mark["role"] == "bar"]
    assert len(bars) == len(found.plan.placements) == len(scene["table"]["rows"])
    assert all(bar["keys"] for bar in bars)
    assert f"{found.plan.bytes:,} bytes" in scene["summary"]
    scale = 240 / found.plan.bytes
    for bar, value in zip(bars, found.plan.placements, strict=True):
        assert bar["h"] == pytest.approx(max(value.bytes * scale, 1), abs=0.06)


def test_times_say_where_they_come_from():
    scene = times_scene(
        [("a", 1e-3), ("b", 3e-3)], ["kernel 0", "kernel 1"], "measured on a machine"
    )
    assert scene["summary"] == "2 kernels, 4 ms in all, measured on a machine."
    assert [row[2] for row in scene["table"]["rows"]] == ["25.0%", "75.0%"]
    bars = [mark for mark in scene["marks"] if mark["shape"] == "rect"]
    assert bars[1]["w"] == pytest.approx(3 * bars[0]["w"], rel=0.01)


def test_a_picture_of_500_calls_has_few_elements():
    """A page draws a group for each box and arrow, and what is in it."""
    found, _ = analysed(chain(500))
    picture = fusion_picture(found, Shown("calls"))
    assert len(picture["nodes"]) == 501
    elements = sum(2 + len(node["lines"]) for node in picture["nodes"])
    elements += 4 * len(picture["edges"]) + 3 * len(picture["frames"])
    assert elements < 5_000


@pytest.mark.campaign
def test_random_graphs():
    """An edge is fused if and only if both calls are in one kernel."""
    for seed in range(share_of(90, at_least=15)):
        found, _ = analysed(RandomGraph(seed).module(), seed % 4)
        for level in LEVELS:
            picture = fusion_picture(found, Shown(level, frozenset({"block 0", "kernel 1"})))
            assert len(picture["nodes"]) == len({node["key"] for node in picture["nodes"]}), seed
        for edge in found.edges:
            if edge.verdict is not None:
                kernels = {found.nodes[n].kernel for n in (edge.source, edge.target)}
                assert edge.verdict.is_fused == (len(kernels) == 1), (seed, edge)
