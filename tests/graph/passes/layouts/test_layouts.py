"""Layouts: by a rule for each operator, and by a search."""

import itertools
import random

import numpy as np
import pytest

from dlcompiler.errors import GraphError
from dlcompiler.graph import builders, evaluate, op, var
from dlcompiler.graph.inference import infer_types, types_of
from dlcompiler.graph.ir import Module
from dlcompiler.graph.passes import PassContext, convert_layout, fold_constants, search_layouts
from dlcompiler.graph.passes.layouts import LayoutCosts, predicted_costs
from dlcompiler.graph.passes.layouts.search import LAYOUTS, _network
from dlcompiler.graph.passes.pipeline import optimize
from tests.graph.random_graphs import flat
from tests.graph.random_images import RandomImages, image_inputs
from tests.share import share_of

NHWC = {"nn.conv2d": ["NHWC", "default"]}
SMALL = ("NCHW", "NHWC", "NCHW2c", "NCHW4c")
UNFUSED = PassContext(3, disabled_pass=("fuse_ops",))


def count(module, name="layout_transform"):
    return sum(call.op.name == name for call in module.calls().values())


def same_values(module, after, seed):
    inputs = image_inputs(module, seed)
    for a, b in zip(flat(evaluate(module, *inputs)), flat(evaluate(after, *inputs)), strict=True):
        assert np.array_equal(a, b), f"seed {seed}"
    assert types_of(after)[after.main.body] == types_of(module)[module.main.body]


def random_costs(seed):
    """Return costs that lead to any mixture of layouts."""
    random_ = random.Random(seed)
    known = {}

    def call(forms, layout):
        return known.setdefault((forms.call, layout), random_.random())

    return LayoutCosts(call, lambda node, kind, a, b: 0.0 if a == b else 0.2, "predicted")


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(4))
def test_random_images_keep_their_values(part):
    changed = 0
    for seed in range(part, share_of(200, at_least=60), 4):
        module = RandomImages(seed).module()
        for after in (
            convert_layout(module, NHWC),
            convert_layout(module, {"nn.conv2d": ["NCHW4c"], "nn.max_pool2d": ["NHWC"]}),
            search_layouts(module, SMALL, random_costs(seed)),
        ):
            same_values(module, after, seed)
            changed += count(after) > 0
    assert changed


@pytest.mark.campaign
@pytest.mark.parametrize("name", ["resnet", "mobilenet", "squeezenet"])
def test_models_keep_their_values(name):
    model = getattr(builders, name)(image=32, classes=4).bound
    module = optimize(model, 3, context=UNFUSED)
    (x,) = image_inputs(module, 0)
    expected = evaluate(module, x)
    for after in (convert_layout(module, NHWC), search_layouts(module)):
        np.testing.assert_allclose(evaluate(after, x), expected, rtol=1e-4, atol=1e-6)
        assert count(fold_constants(after)) <= 6
        assert [d.made_by for d in after.decisions()].count("convert_layout")


def test_layouts_follow_a_convolution():
    x = var("x", (1, 4, 6, 6))
    y = op.nn.relu(op.nn.conv2d(x, np.ones((4, 4, 3, 3), "float32"), padding=1))
    y = op.add(op.nn.max_pool2d(y, pool_size=2, strides=2), np.ones((4, 1, 1), "float32"))
    after = fold_constants(convert_layout(Module.from_expr(y), NHWC))
    names = [call.op.name.rpartition(".")[2] for call in after.calls().values()]
    assert names == ["layout_transform", "conv2d", "relu", "max_pool2d", "add", "layout_transform"]


def test_what_is_asked_for_again_changes_nothing():
    for seed in range(share_of(40, at_least=10)):
        module = RandomImages(seed).module()
        assert convert_layout(module, {"nn.conv2d": ["default"]}) is module
        assert convert_layout(module, {}) is module


def test_a_layout_that_cannot_be_is_left_out():
    x = var("x", (1, 3, 6, 6))
    module = Module.from_expr(op.nn.conv2d(x, var("w", (4, 3, 1, 1)), name="first"))
    blocked = convert_layout(module, {"nn.conv2d": ["NCHW4c"]})
    (decision,) = blocked.decisions(about="first")
    assert (decision.verdict, decision.rule) == ("not laid out", "not possible")
    assert count(blocked) == 0


@pytest.mark.parametrize(
    ("desired", "words"),
    [
        ({"nn.conv2d": ["N0x"]}, "not a layout"),
        ({"nn.conv9d": ["NHWC"]}, "no operator with layouts has the name nn.conv9d"),
        ({"nn.conv2d": "NHWC"}, "not layouts of nn.conv2d"),
        ({"nn.conv2d": ["NHWC", "OIW"]}, "layout"),
    ],
)
def test_wrong_layouts_are_refused(desired, words):
    module = Module.from_expr(op.nn.conv2d(var("x", (1, 4, 6, 6)), var("w", (4, 4, 1, 1))))
    with pytest.raises(GraphError, match=words):
        convert_layout(module, desired)


def test_costs_that_are_no_numbers_are_refused():
    module = Module.from_expr(op.nn.conv2d(var("x", (1, 4, 6, 6)), var("w", (4, 4, 1, 1))))
    costs = LayoutCosts(lambda forms, layout: float("nan"), lambda *_: 0.0)
    with pytest.raises(GraphError, match="not a number"):
        search_layouts(module, costs=costs)


def total(network, places):
    """Return the cost of a network in given states."""
    found = sum(network.own[call][place] for call, place in places.items())
    pairs = {frozenset((a, b)) for a, beside in network.edges.items() for b in beside}
    for a, b in map(tuple, pairs):
        found += network.edges[a][b][places[a], places[b]]
    return found


@pytest.mark.campaign
def test_the_search_finds_the_least_cost_of_small_graphs():
    exact = 0
    for seed in range(share_of(120, at_least=30)):
        module = infer_types(RandomImages(seed, 6).module())
        network = _network(module.main, types_of(module), SMALL, random_costs(seed))
        states = [range(len(network.states[call])) for call in network.forms]
        if not 1 < np.prod([len(s) for s in states]) <= 5000:
            continue
        chosen = {c: network.states[c].index(text) for c, text in network.solved().items()}
        best = min(
            total(network, dict(zip(network.forms, places, strict=True)))
            for places in itertools.product(*states)
        )
        assert total(network, chosen) >= best - 1e-9
        if network.is_exact:
            exact += 1
            assert total(network, chosen) == pytest.approx(best), f"seed {seed}"
    assert exact


def test_the_decision_names_the_costs_of_all_layouts():
    x = var("x", (1, 16, 7, 7))
    module = Module.from_expr(
        op.nn.conv2d(x, var("w", (512, 16, 3, 3)), strides=2, padding=1, name="conv")
    )
    after = search_layouts(module)
    (decision,) = [d for d in after.decisions(about="conv") if d.rule == "least cost"]
    assert decision.reason.startswith("NHWC: least cost")
    assert [words.split()[0] for words in decision.alternatives] == ["NCHW", "NCHW8c", "NCHW16c"]
    assert decision.effect.provenance.startswith("predicted")
    assert decision.effect.seconds > 0


def test_dear_changes_of_layout_are_avoided():
    x = var("x", (1, 16, 7, 7))
    module = Module.from_expr(op.nn.conv2d(x, var("w", (16, 16, 3, 3)), strides=2, padding=1))
    assert count(search_layouts(module, LAYOUTS, predicted_costs(bytes_per_second=1e6))) == 0


# -- what is counted ------------------------------------------------------------------------------


def two_states(costs, transform):
    """Return costs of calls by name in NCHW and in NHWC, and of changes of layout."""

    def call(forms, layout):
        return dict(zip(("NCHW", "NHWC"), costs[forms.call.name], strict=True))[layout]

    return LayoutCosts(call, lambda value, _, a, b: 0.0 if a == b else transform(value, a, b))


def test_the_change_back_for_a_result_counts():
    module = Module.from_expr(
        op.nn.conv2d(var("x", (1, 4, 6, 6)), var("w", (4, 4, 1, 1)), name="conv")
    )

    def back(_, a, b):
        return 0.5 if (a, b) == ("NHWC", "NCHW") else 0.0

    assert count(search_layouts(module, ("NHWC",), two_states({"conv": (1.0, 0.9)}, back))) == 0
    assert count(search_layouts(module, ("NHWC",), two_states({"conv": (1.0, 0.4)}, back))) == 3


def test_a_change_there_has_another_cost_than_one_back():
    first = op.nn.conv2d(var("x", (1, 4, 6, 6)), var("v", (4, 4, 1, 1)), name="first")
    module = Module.from_expr(op.nn.conv2d(first, var("w", (4, 4, 1, 1)), name="second"))
    own = {"first": (1.0, 0.0), "second": (0.0, 1.0)}
    dear_back = two_states(own, lambda _, a, b: 10.0 if (a, b) == ("NHWC", "NCHW") else 0.0)
    assert count(search_layouts(module, ("NHWC",), dear_back)) == 0
    dear_there = two_states(own, lambda _, a, b: 10.0 if (a, b) == ("NCHW", "NHWC") else 0.0)
    assert count(search_layouts(module, ("NHWC",), dear_there)) == 0


def test_each_value_between_two_calls_counts():
    first = op.nn.conv2d(var("x", (1, 4, 6, 6)), var("v", (4, 4, 1, 1)), name="first")
    halves = op.split(first, 2, axis=1)
    whole = op.concatenate([halves[0], halves[1]], axis=1)
    module = Module.from_expr(op.nn.conv2d(whole, var("w", (4, 4, 1, 1)), name="second"))

    def halves_only(value, *_):
        return {"Var": 0.0, "TupleGetItem": 1.0}.get(type(value).__name__, 9.0)

    def changes(first_costs):
        costs = two_states({"first": first_costs, "second": (0.0, 99.0)}, halves_only)
        return count(search_layouts(module, ("NHWC",), costs))

    assert changes((1.5, 0.0)) == 0
    assert changes((2.5, 0.0)) == 4  # of the image, the weights and both halves
