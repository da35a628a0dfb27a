"""Patterns, regions for a device, and copies between devices."""

import random

import numpy as np
import pytest

from dlcompiler.errors import GraphError
from dlcompiler.graph import evaluate, op, types_of, var
from dlcompiler.graph.ir import (
    Constant,
    Function,
    Module,
    Tuple,
    as_expr,
    post_order,
    rewrite,
)
from dlcompiler.graph.passes import merge_composite, partition_for_device, place_on_devices
from dlcompiler.graph.passes.devices import DeviceRules, is_constant, is_op, wildcard
from dlcompiler.graph.passes.devices.patterns import matched
from dlcompiler.graph.passes.pipeline import optimize
from dlcompiler.graph.passes.tools import operator_of
from tests.graph.pass_cases import case
from tests.graph.random_graphs import flat
from tests.share import share_of

X = var("x", (1, 4, 6, 6))
W = Constant(np.ones((4, 4, 3, 3), "float32"))
CONV = is_op("nn.conv2d")(wildcard(), is_constant())
CONV_RELU = CONV.optional(lambda conv: is_op("nn.relu")(conv))


def conv(data, name="", **attrs):
    return op.nn.conv2d(data, W, padding=1, name=name, **attrs)


def same_values(module, after, inputs, seed=0):
    for a, b in zip(flat(evaluate(module, *inputs)), flat(evaluate(after, *inputs)), strict=True):
        assert np.array_equal(a, b, equal_nan=True), f"seed {seed}"
    assert types_of(after)[after.main.body] == types_of(module)[module.main.body]


def image():
    return [np.random.default_rng(0).integers(-2, 3, (1, 4, 6, 6)).astype("float32")]


# -- patterns -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "node", "count"),
    [
        (CONV, conv(X), 1),
        (CONV, op.nn.conv2d(X, var("w", (4, 4, 3, 3))), None),
        (CONV_RELU, op.nn.relu(conv(X)), 2),
        (CONV_RELU, conv(X), 1),
        (is_op("nn.conv2d").has_attr(groups=2), conv(X), None),
        (is_op("nn.conv2d").has_attr(groups=1), conv(X), 1),
        (is_op("nn.conv2d").has_attr(strides=[2], padding=1), conv(X, strides=2), 1),
        (is_op("nn.conv2d").has_attr(strides=2).has_attr(groups=1), conv(X), None),
        (is_op("add")(CONV, wildcard()), op.add(X, conv(X)), 2),
        (is_op("subtract")(CONV, wildcard()), op.subtract(X, conv(X)), None),
        (is_op("exp") | is_op("sqrt"), op.sqrt(X), 1),
        (wildcard(), X, 0),
        (is_op("exp")(wildcard(), wildcard()), op.exp(X), None),
    ],
)
def test_what_a_pattern_matches(pattern, node, count):
    found = matched(pattern, node)
    assert (None if found is None else len(found.calls)) == count


def test_an_unknown_operator_is_refused():
    with pytest.raises(GraphError, match="no operator has this name"):
        is_op("nn.conv9d")


@pytest.mark.parametrize(
    ("attrs", "words"),
    [({"stride": 2}, "no attribute stride"), ({"strides": "x"}, "strides has a wrong value")],
)
def test_an_attribute_that_cannot_be_is_refused(attrs, words):
    with pytest.raises(GraphError, match=f"pattern of nn.conv2d: .*{words}"):
        is_op("nn.conv2d").has_attr(**attrs)


def test_a_wildcard_for_what_the_pattern_matches_is_no_input():
    inner, number = op.exp(X), as_expr(2.0)
    for body, pattern, count in (
        (op.add(inner, inner), is_op("add")(is_op("exp")(wildcard()), wildcard()), 1),
        (op.add(number, number), is_op("add")(is_constant(), wildcard()), 0),
    ):
        after = merge_composite(Module.from_expr(body), [("p", pattern)])
        (made,) = [n for n in after.nodes() if isinstance(n, Function) and "Composite" in n.attrs]
        assert len(made.params) == count
        assert len([n for n in after.nodes() if operator_of(n) == "exp"]) == count


def composites(module):
    return [node.attrs["Composite"] for node in module.nodes()
            if isinstance(node, Function) and "Composite" in node.attrs]  # fmt: skip


def test_the_longest_match_comes_first():
    module = Module.from_expr(op.nn.relu(conv(op.nn.relu(conv(X)))))
    after = merge_composite(module, [("conv_relu", CONV_RELU)])
    assert composites(after) == ["conv_relu", "conv_relu"]
    assert [len(d.subject) for d in after.decisions()] == [2, 2]
    same_values(module, after, image())


def test_a_value_that_something_else_uses_is_no_match():
    inner = conv(X, name="a")
    module = Module.from_expr(Tuple((op.nn.relu(inner), inner)))
    after = merge_composite(module, [("conv_relu", is_op("nn.relu")(CONV))])
    assert after is module
    twice = Module.from_expr(op.add(inner, inner))
    same_values(twice, merge_composite(twice, [("sum", is_op("add")(CONV, CONV))]), image())


# -- regions --------------------------------------------------------------------------------------


def only(*names):
    """Return rules of a device that has some operators."""
    return DeviceRules("dev", why_not=lambda call, _: "" if operator_of(call) in names else "no")


def regions(module):
    return {name: [operator_of(c) for c in post_order(f.body) if operator_of(c)]
            for name, f in module.functions.items() if "Compiler" in f.attrs}  # fmt: skip


def test_calls_beside_each_other_are_one_region():
    module = Module.from_expr(op.sqrt(op.add(op.exp(X), op.tanh(X))))
    after = partition_for_device(module, only("exp", "tanh", "add"))
    assert regions(after) == {"dev_0": ["exp", "tanh", "add"]}
    assert after["dev_0"].attrs["Compiler"] == "dev"
    same_values(module, after, image())


def test_a_region_does_not_wait_for_its_own_result():
    first = op.exp(X)
    module = Module.from_expr(op.add(first, op.sqrt(first)))
    after = partition_for_device(module, only("exp", "add"))
    assert sorted(regions(after).values()) == [["add"], ["exp"]]
    same_values(module, after, image())


def test_a_longer_way_outside_is_waited_for_too():
    first = op.exp(X)
    module = Module.from_expr(op.add(first, op.sqrt(op.tanh(op.abs(first)))))
    after = partition_for_device(module, only("exp", "add"))
    assert sorted(regions(after).values()) == [["add"], ["exp"]]
    same_values(module, after, image())


def test_a_region_with_several_results():
    first = op.exp(X)
    second = op.tanh(first)
    module = Module.from_expr(Tuple((op.sqrt(first), op.sqrt(second))))
    after = partition_for_device(module, only("exp", "tanh"))
    assert regions(after) == {"dev_0": ["exp", "tanh"]}
    same_values(module, after, image())


def test_tuples_between_calls_are_inside():
    parts = op.split(X, 2, axis=1)
    module = Module.from_expr(op.concatenate([parts[1], op.exp(parts[0])], axis=1))
    after = partition_for_device(module, only("split", "exp", "concatenate"))
    assert regions(after) == {"dev_0": ["split", "exp", "concatenate"]}
    same_values(module, after, image())


def test_patterns_and_reasons():
    module = Module.from_expr(op.sqrt(op.nn.relu(conv(X, name="conv")), name="root"))
    rules = DeviceRules("vta", [("vta.conv", CONV_RELU)])
    after = partition_for_device(module, rules)
    assert regions(after) == {"vta_0": ["nn.conv2d", "nn.relu"]}
    assert composites(after) == ["vta.conv"]
    (why,) = after.decisions(about="root")
    assert (why.rule, why.reason) == ("host", "root stays on the host: the device has no sqrt")
    same_values(module, optimize(after, 4), image())


def test_small_regions_are_left():
    module = Module.from_expr(op.sqrt(op.exp(X)))
    rules = DeviceRules("dev", why_not=only("exp").why_not, least_calls=2)
    after = partition_for_device(module, rules)
    assert regions(after) == {}
    assert {d.rule for d in after.decisions()} == {"supported", "host"}


def test_names_that_are_taken():
    x = var("y", (3,))
    module = Module.from_expr(op.exp(x), {"dev_0": Function((x,), op.sqrt(x))})
    after = partition_for_device(module, only("exp"))
    assert set(after.functions) == {"main", "dev_0", "dev_1"}


@pytest.mark.campaign
def test_random_regions_keep_the_values():
    count = 0
    for seed in range(share_of(400, at_least=60)):
        module, inputs = case(seed)
        random_ = random.Random(seed)
        names = sorted({operator_of(n) for n in module.nodes()} - {""})
        chosen = random_.sample(names, random_.randint(0, len(names)))
        rules = DeviceRules("dev", [("c", CONV_RELU)], only(*chosen).why_not)
        after = partition_for_device(module, rules)
        count += len(regions(after))
        same_values(module, after, inputs, seed)
        same_values(module, optimize(after, 4), inputs, seed)
    assert count


# -- devices --------------------------------------------------------------------------------------


def copies(module):
    return [
        (c.attrs["source"], c.attrs["target"]) for c in module.calls().values()
        if c.op.name == "device_copy"
    ]  # fmt: skip


def test_each_value_is_copied_once_to_a_device():
    shared = op.exp(X, name="shared")
    on_gpu = [op.on_device(op.add(shared, as_expr(float(i))), device="gpu") for i in range(3)]
    module = Module.from_expr(op.add(op.add(on_gpu[0], on_gpu[1]), on_gpu[2], name="last"))
    after = place_on_devices(module)
    assert copies(after) == [("cpu", "gpu"), ("gpu", "cpu")]
    assert (
        after.decisions(about="last")[0].reason == "last runs on gpu: its first operand is on gpu"
    )
    (copied,) = [d for d in after.decisions(about="shared") if d.rule == "copy"]
    assert copied.effect.bytes == -4 * 4 * 36
    same_values(module, after, image())


def test_what_nothing_places_stays():
    module = Module.from_expr(op.exp(X))
    assert place_on_devices(module) is module


def test_a_tuple_is_copied_by_field():
    parts = op.on_device(op.copy(X), device="gpu")
    made = op.split(parts, 2, axis=1)
    module = Module.from_expr(Tuple((made, op.on_device(op.exp(made[0]), device="npu"))))
    after = place_on_devices(module)
    assert sorted(copies(after)) == [
        ("cpu", "gpu"), ("gpu", "cpu"), ("gpu", "cpu"), ("gpu", "npu"), ("npu", "cpu"),
    ]  # fmt: skip
    same_values(module, after, image())


def annotated(module, random_):
    """Return a module with annotations around some of its calls."""

    def rule(node):
        if operator_of(node) in ("", "split", "nn.batch_norm") or random_.random() < 0.6:
            return node
        return op.on_device(node, device=random_.choice(("gpu", "npu", "cpu")))

    return Module({name: rewrite(f, rule) for name, f in module.functions.items()})


@pytest.mark.campaign
def test_random_places_keep_the_values():
    count = 0
    for seed in range(share_of(400, at_least=60)):
        module, inputs = case(seed)
        wished = annotated(module, random.Random(seed))
        after = place_on_devices(wished)
        assert not any(operator_of(n) == "on_device" for n in after.nodes())
        count += len(copies(after))
        same_values(module, after, inputs, seed)
    assert count
