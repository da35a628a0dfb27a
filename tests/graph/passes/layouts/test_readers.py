"""Values that are read in unusual ways: whole tuples, and dimensions taken for others."""

import numpy as np
import pytest

from dlcompiler.errors import GraphError
from dlcompiler.graph import evaluate, op, types_of, var
from dlcompiler.graph.ir import Constant, Module, Tuple, TupleGetItem, Var
from dlcompiler.graph.passes import convert_layout, search_layouts
from dlcompiler.graph.passes.layouts import LayoutCosts

X = var("x", (1, 4, 4, 4))
WEIGHT = np.random.default_rng(0).integers(-2, 3, (4, 4, 1, 1)).astype("float32")
IMAGE = np.random.default_rng(1).integers(-2, 3, (1, 4, 4, 4)).astype("float32")
LAYOUTS = ("NHWC", "NCHW2c", "NWHC")


def conv(x, **attrs):
    return op.nn.conv2d(x, WEIGHT, name="conv", **attrs)


def turned(x):
    """Return a convolution that takes the dimensions of NCHW for those of NHWC."""
    return op.nn.conv2d(x, WEIGHT.reshape(1, 1, 4, 4), data_layout="NHWC", kernel_layout="HWIO")


def values(module):
    found = evaluate(module, IMAGE)
    return found if isinstance(found, tuple) else (found,)


def search(module, wanted):
    """Choose a layout for each convolution that can have it."""
    costs = LayoutCosts(lambda _, text: float(text != wanted), lambda *_: 0.0)
    return search_layouts(module, (wanted,), costs)


READERS = {
    "a split that is joined": op.concatenate(op.split(conv(X), 2, axis=1), axis=1),
    "one part": op.split(conv(X), 1, axis=1),
    "one part that is joined": op.concatenate(op.split(conv(X), 1, axis=1), axis=1),
    "a tuple in a tuple": TupleGetItem(TupleGetItem(Tuple((Tuple((conv(X),)), X)), 0), 0),
    "other dimensions": turned(op.nn.relu(conv(X))),
    "other dimensions, pooled": op.nn.max_pool2d(conv(X), pool_size=2, layout="NHWC"),
    "other dimensions, broadcast": op.add(conv(X), op.sum(turned(X), axis=0)),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_readers_get_what_they_got(name, layout):
    module = Module.from_expr(READERS[name])
    wishes = {"nn.conv2d": [layout], "nn.max_pool2d": [layout]}
    for after in (convert_layout(module, wishes), search(module, layout)):
        assert types_of(after)[after.main.body] == types_of(module)[module.main.body]
        for a, b in zip(values(module), values(after), strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_parts_of_a_tuple_that_is_read_whole_have_costs():
    module = Module.from_expr(op.split(conv(X), 2, axis=1))

    def found(cost_of_part):
        def change(value, kind, old, new):
            is_free = old == new or isinstance(value, Var | Constant)
            return 0.0 if is_free else cost_of_part if kind.shape[1] == 2 else 9.0

        costs = LayoutCosts(lambda _, text: float(text == "NCHW"), change)
        return search_layouts(module, ("NHWC",), costs).calls()["conv"].attrs.get("data_layout")

    assert (found(0.4), found(0.6)) == ("NHWC", None)


def test_a_change_of_layout_says_how_many_bytes_it_moves():
    after = convert_layout(Module.from_expr(op.split(conv(X), 2, axis=1)), {"nn.conv2d": ["NHWC"]})
    moved = [d.effect.bytes for d in after.decisions() if d.rule == "transform"]
    assert moved == [-2 * 4 * 64, -2 * 4 * 32, -2 * 4 * 32]


# -- wishes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("images", ["NCHW", "default"])
def test_weights_may_change_alone(images):
    module = Module.from_expr(conv(X))
    after = convert_layout(module, {"nn.conv2d": [images, "HWIO"]})
    assert dict(after.calls()["conv"].attrs) == {"kernel_layout": "HWIO"}
    (decision,) = after.decisions(about="conv")
    assert "HWIO was asked for" in decision.reason
    np.testing.assert_array_equal(values(module)[0], values(after)[0])


def test_weights_of_an_operator_without_any_are_refused():
    module = Module.from_expr(op.nn.relu(conv(X)))
    with pytest.raises(GraphError, match=r"nn\.relu has no weights"):
        convert_layout(module, {"nn.relu": ["NHWC", "HWIO"]})


def test_a_second_run_changes_nothing():
    once = convert_layout(Module.from_expr(conv(X)), {"nn.conv2d": ["NHWC", "OIHW"]})
    assert convert_layout(once, {"nn.conv2d": ["NHWC", "OIHW"]}) is once
