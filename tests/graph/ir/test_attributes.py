"""Attributes of calls: given ones by key, all by name."""

import copy
import pickle

import pytest

from dlcompiler.graph import op, var
from dlcompiler.graph.ir import Call, Function, Module, with_children
from dlcompiler.graph.ir import op as operator

X = var("x", (1, 4, 6, 6))
CONV = op.nn.conv2d(X, var("w", (8, 4, 3, 3)), channels=8, kernel_size=3, padding=1)


def test_an_attribute_has_its_value_by_name():
    assert CONV.attrs.kernel_size == CONV.attrs["kernel_size"] == (3, 3)
    assert CONV.attrs.channels == 8
    assert CONV.attrs.padding == (1, 1, 1, 1)


def test_an_attribute_that_is_left_out_has_its_default_by_name_only():
    assert CONV.attrs.strides == (1, 1)
    assert CONV.attrs.data_layout == "NCHW"
    assert "strides" not in CONV.attrs
    assert op.nn.relu(X).attrs == {}
    assert op.sum(X).attrs.keepdims is False


def test_an_unknown_attribute_is_refused_with_those_that_are_known():
    with pytest.raises(AttributeError, match=r"nn.conv2d has no attribute 'stride'.*strides"):
        CONV.attrs.stride  # noqa: B018  reading it is the test
    with pytest.raises(AttributeError, match="no attribute 'Primitive'; it has none"):
        Function((X,), X).attrs.Primitive  # noqa: B018  reading it is the test
    assert Function((X,), X, attrs={"Primitive": 1}).attrs.Primitive == 1
    assert not hasattr(Call(operator("no.such.operator"), (X,), {"a": 1}).attrs, "b")


def test_a_function_says_whether_it_is_a_kernel():
    assert Function((X,), X, attrs={"Primitive": 1}).is_kernel
    assert not Function((X,), X, attrs={"Primitive": 0}).is_kernel
    assert not Function((X,), X).is_kernel


def test_a_call_with_another_operator_has_its_defaults():
    pooled = op.nn.max_pool2d(X, pool_size=2)
    other = with_children(pooled, [operator("nn.avg_pool2d"), X])
    assert other.attrs.count_include_pad is False
    assert not hasattr(pooled.attrs, "count_include_pad")


@pytest.mark.parametrize(
    "change",
    [
        lambda attrs: attrs.__setitem__("channels", 1),
        lambda attrs: attrs.__delitem__("channels"),
        lambda attrs: attrs.update(channels=1),
        lambda attrs: attrs.setdefault("channels", 1),
        lambda attrs: attrs.pop("channels"),
        lambda attrs: attrs.popitem(),
        lambda attrs: attrs.clear(),
        lambda attrs: attrs.__ior__({}),
    ],
)
def test_attributes_do_not_change(change):
    with pytest.raises(TypeError, match="cannot be changed"):
        change(CONV.attrs)
    with pytest.raises(AttributeError):
        CONV.attrs.channels = 1
    assert CONV.attrs.channels == 8


def test_attributes_are_kept_by_passes_and_copies():
    (call,) = Module.from_expr(CONV).calls().values()
    for attrs in (call.attrs, copy.deepcopy(call.attrs), pickle.loads(pickle.dumps(call.attrs))):
        assert attrs == CONV.attrs
        assert attrs.strides == (1, 1)
