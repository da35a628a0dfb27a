import json
import math

import pytest

from dlcompiler import te
from dlcompiler.schedule import create_schedule, infer_bounds
from dlcompiler.views import loop_table, loop_tree
from dlcompiler.views.render.colors import HUES, axis_colors, lighter
from tests.intrinsics import tiled


def rows_by_key(tree):
    assert len({row["key"] for row in tree["rows"]}) == len(tree["rows"])
    return {row["key"]: row for row in tree["rows"]}


def test_plain_nest_in_order(plain):
    tree = loop_tree(plain)
    assert [(row["type"], row["name"], row["depth"]) for row in tree["rows"]] == [
        ("stage", "C", 0),
        ("loop", "i", 1),
        ("loop", "j", 2),
        ("statement", "init C[…] = 0.0", 3),
        ("loop", "k", 3),
        ("statement", "C[i, j] += A[i, k]*B[k, j]", 4),
    ]
    assert tree["inputs"] == ["A: float32[64, 64]", "B: float32[64, 64]"]
    assert tree["summary"] == "1 stage, 3 loops"


def test_it_is_json(blocked):
    tree = loop_tree(blocked)
    assert json.loads(json.dumps(tree)) == tree


def test_attached_stage_stands_inside_its_loop(blocked):
    rows = rows_by_key(loop_tree(blocked))
    stage = rows["C.local"]
    assert stage["parent"] == "C/j.outer"
    assert stage["depth"] == rows["C/j.outer"]["depth"] + 1
    assert stage["detail"] == "float32[16, 16] in local"
    assert stage["label"] == (
        "stage C.local, float32[16, 16] in local, inside loop C.j.outer, computed 16 times: "
        "C.local[i.c, j.c] += A[i.c, k]*B[k, j.c]"
    )


def test_a_loop_says_what_it_is(blocked):
    rows = rows_by_key(loop_tree(blocked))
    loop = rows["C.local/k.inner"]
    assert (loop["extent"], loop["kind"], loop["axis"]) == (4, "serial", "reduce")
    assert loop["made_by"] == "split C.local k 4"
    assert loop["label"] == "loop k.inner of C.local, level 6, reduction, extent 4, serial"
    assert rows["C.local/j.c"]["kind"] == "vectorized"


def test_extents_and_runs_are_those_of_bound_inference(blocked):
    rows = rows_by_key(loop_tree(blocked))
    bounds = infer_bounds(blocked.state).stages
    for stage in blocked.state.stages:
        for leaf in stage.leaves:
            row = rows[f"{stage.name}/{stage.paths[leaf]}"]
            assert row["extent"] == bounds[stage.name].extents[leaf]
    # 64 x 64 x 64 updates, and every element is copied once.
    assert rows["C.local//body"]["runs"] == 64**3
    assert rows["C//body"]["runs"] == 64**2


def test_a_key_is_the_same_in_every_state(plain, tensors):
    before = rows_by_key(loop_tree(plain))
    stage = plain[tensors[2]]
    stage.split(stage.op.axis[0], 8)
    after = rows_by_key(loop_tree(plain))
    assert {"C", "C/j", "C/k", "C//body"} <= before.keys() & after.keys()


def test_inlined_stages_are_listed():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((8,), lambda i: B[i] * 2.0, name="C")
    s = create_schedule(C.op)
    s[B].compute_inline()
    tree = loop_tree(s)
    assert tree["inlined"] == ["B"]
    assert [row["name"] for row in tree["rows"]] == ["C", "i", "C[i] = (A[i] + 1.0)*2.0"]


def test_an_open_obligation_is_shown_and_its_stage_is_not_lost(blocked, tensors):
    stage = blocked[tensors[2]]
    outer = stage.leaf_iter_vars[1]
    stage.split(outer, 2)
    tree = loop_tree(blocked)
    assert "it will be computed at C.j.outer.inner" in tree["obligations"][0]
    assert rows_by_key(tree)["C.local"]["parent"] == "C/j.outer.inner"
    blocked.undo()
    stage.fuse(outer, stage.leaf_iter_vars[2])
    tree = loop_tree(blocked)
    assert "C.local is attached at C.j.outer" in tree["obligations"][0]
    assert rows_by_key(tree)["C.local"]["parent"] is None


def test_a_long_statement_is_cut():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: te.exp(sum((A[i] * float(n) for n in range(99)), A[i])))
    statement = loop_tree(create_schedule(B.op))["rows"][-1]["name"]
    assert len(statement) == 200
    assert statement.endswith("…")


def test_zero_iterations():
    A = te.placeholder((0, 4), name="A")
    B = te.compute((0, 4), lambda i, j: A[i, j] + 1.0, name="B")
    assert loop_tree(create_schedule(B.op))["rows"][-1]["runs"] == 0


def test_children_of_a_split_keep_the_hue(blocked):
    rows = rows_by_key(loop_tree(blocked))
    assert rows["C/i.outer"]["colors"] == [HUES[0]]
    assert rows["C/i.inner"]["colors"] == [lighter(HUES[0])]
    assert rows["C/j.outer"]["colors"] == [HUES[1]]
    assert rows["C.local/k.outer"]["colors"] == [HUES[2]]


def test_a_cache_has_the_hues_of_what_it_caches(blocked):
    rows = rows_by_key(loop_tree(blocked))
    assert rows["C.local/i.c"]["colors"] == [HUES[0]]
    assert rows["C.local/j.c"]["colors"] == [HUES[1]]


def test_a_fused_axis_has_the_hues_of_both(plain, tensors):
    stage = plain[tensors[2]]
    fused = stage.fuse(*stage.op.axis)
    assert axis_colors(plain.state)["C"][fused] == (HUES[0], HUES[1])


def test_more_axes_than_hues():
    A = te.placeholder((2,) * 9, name="A")
    B = te.compute((2,) * 9, lambda *i: A[i] + 1.0, name="B")
    colors = [row["colors"] for row in loop_tree(create_schedule(B.op))["rows"] if row["colors"]]
    assert len(colors) == 9
    assert colors[7] == colors[0]


def contrast(a, b):
    """Contrast ratio of two colours. Source: WCAG 2.1, definition of contrast ratio."""

    def luminance(color):
        parts = [int(color[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("color", HUES[:4])
def test_the_first_hues_stand_out_on_light_ground(color):
    # The others are pale: that is why every mark has an outline.
    assert contrast(color, "#FFFFFF") > 2.9


def test_table_of_loops(blocked, golden):
    golden("blocked", loop_table(blocked))


def test_every_loop_runs_the_product_of_the_extents_around_it(blocked):
    rows = rows_by_key(loop_tree(blocked))
    for row in rows.values():
        extents, at = [], row
        while at is not None:
            extents.append(at["extent"] or 1)
            at = rows.get(at["parent"])
        assert row["runs"] == math.prod(extents)


def test_loops_of_an_intrinsic_are_marked():
    s, args, k = tiled(12, 32, 16, (6, 16, 8))
    s[args[-1]].tensorize(k, "gemm_f32_6x16x8")
    rows = {row["name"]: row for row in loop_tree(s)["rows"] if row["type"] == "loop"}
    assert {name: row["detail"] for name, row in rows.items()} == {
        "i.outer": "",
        "j.outer": "",
        "k.outer": "",
        "k.inner": "gemm_f32_6x16x8",
        "i.inner": "in gemm_f32_6x16x8",
        "j.inner": "in gemm_f32_6x16x8",
    }
    assert rows["k.inner"]["label"].endswith("serial, gemm_f32_6x16x8")


def test_the_statement_of_one_element_is_written_as_in_the_program():
    A = te.placeholder((), name="A")
    B = te.compute((), lambda: A[()] * 2.0, name="B")
    rows = loop_tree(create_schedule(B.op))["rows"]
    assert [row["name"] for row in rows] == ["B", "B[()] = A[()]*2.0"]
