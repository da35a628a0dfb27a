"""Groups by the published rules: the cases that Relay's own tests of FuseOps name."""

import numpy as np
import pytest

from dlcompiler.graph import evaluate, op, var
from dlcompiler.graph.ir import Call, Function, Module, Tuple, calls, post_order
from dlcompiler.graph.passes import fuse_ops
from tests.graph.random_graphs import flat, inputs_of


def kernels(module):
    """Return the short names of the calls in each kernel, in the order of the program."""
    return [
        [call.op.name.rpartition(".")[2] for call in calls(node.op.body)]
        for node in post_order(module.main.body)
        if isinstance(node, Call) and isinstance(node.op, Function)
    ]


def fused(expr, **options):
    """Fuse a graph, check that it computes the same, and return its kernels."""
    module = Module.from_expr(expr)
    after = fuse_ops(module, **options)
    inputs = inputs_of(module, 0)
    for a, b in zip(flat(evaluate(module, *inputs)), flat(evaluate(after, *inputs)), strict=True):
        assert np.array_equal(a, b, equal_nan=True)
    return kernels(after)


def test_elementwise_operators_are_one_kernel():
    x = var("x", (10, 20))
    assert fused(op.squeeze(op.exp(op.add(x, 1.0)))) == [["add", "exp", "squeeze"]]


def test_the_operators_behind_a_convolution_join_it():
    x = var("x", (1, 16, 6, 6))
    before = op.add(x, 1.0)
    y = op.nn.conv2d(before, var("w1", (16, 16, 3, 3)), padding=1)
    y = op.add(y, op.add(1.0, y))
    z2 = op.nn.conv2d(y, var("w2", (16, 16, 1, 1)))
    z3 = op.nn.conv2d(y, var("w3", (16, 16, 3, 3)), padding=1)
    groups = fused(op.add(z2, z3))
    assert sorted(groups) == sorted([
        ["add"], ["conv2d", "add", "add"], ["conv2d"], ["conv2d", "add"],
    ])  # fmt: skip


def test_a_concatenation_takes_in_what_makes_its_parts():
    x = var("x", (1, 4, 8, 8))
    pooled = op.nn.max_pool2d(x, pool_size=2, strides=2)
    upsampled = op.nn.upsampling(pooled, scale_h=2, scale_w=2)
    joined = op.concatenate([upsampled, x], axis=1)
    assert fused(op.add(joined, 1.0)) == [["max_pool2d"], ["upsampling", "concatenate", "add"]]


def test_a_tuple_that_is_returned_is_no_kernel():
    x = var("x", (1, 4, 8, 8))
    pooled = op.nn.max_pool2d(x, pool_size=2, strides=2)
    upsampled = op.nn.upsampling(pooled, scale_h=2, scale_w=2)
    assert fused(Tuple((upsampled, x))) == [["max_pool2d"], ["upsampling"]]


def test_a_part_of_a_tuple_is_returned():
    x, w = var("x", (2, 6)), var("w", (9, 6))
    parts = op.split(op.nn.dense(x, w), 3, axis=1)
    other = op.nn.dense(parts[0], var("w1", (5, 3)))
    assert fused(other) == [["dense"], ["split"], ["dense"]]


def test_elementwise_operators_on_parts_of_a_tuple():
    x, w = var("x", (2, 6)), var("w", (9, 6))
    a = op.split(op.nn.dense(x, w), 3, axis=1)
    out = op.add(op.sigmoid(a[0]), op.multiply(op.tanh(a[1]), op.exp(a[2])))
    assert fused(out) == [["dense"], ["split", "sigmoid", "tanh", "exp", "multiply", "add"]]


def test_tuples_of_tuples():
    x = var("x", (1, 4, 8, 8))
    pooled = op.nn.max_pool2d(x, pool_size=2, strides=2)
    first = op.concatenate([op.nn.upsampling(pooled, scale_h=2, scale_w=2), x], axis=1)
    second = op.concatenate([first, x], axis=1)
    pooled_again = op.nn.max_pool2d(second, pool_size=2, strides=2)
    third = op.add(op.concatenate([pooled_again, pooled], axis=1), 1.0)
    assert fused(third) == [
        ["max_pool2d"], ["upsampling", "concatenate", "concatenate"], ["max_pool2d"],
        ["concatenate", "add"],
    ]  # fmt: skip


def test_branches_with_convolutions():
    def conv(data, name):
        return op.nn.relu(op.nn.conv2d(data, var(name, (2, data_channels[0], 3, 3)), padding=1))

    data_channels = [4]
    x = var("x", (1, 4, 5, 5))
    first = op.concatenate([conv(x, "a"), conv(x, "b")], axis=1)
    out = op.concatenate([conv(first, "c"), conv(first, "d")], axis=1)
    assert fused(out) == [
        *[["conv2d", "relu"]] * 2, ["concatenate"], *[["conv2d", "relu"]] * 2, ["concatenate"],
    ]  # fmt: skip


def test_injective_operators_in_parallel():
    x = var("x", (10, 20), "int32")
    y = op.add(x, 1)
    out = op.left_shift(op.squeeze(y), op.transpose(y, axes=(0, 1)))
    assert fused(out) == [["add", "squeeze", "transpose", "left_shift"]]


def test_a_group_has_a_greatest_size():
    y = var("x", (3,))
    for _ in range(300):
        y = op.nn.relu(y)
    assert [len(group) for group in fused(y)] == [256, 44]
    assert [len(group) for group in fused(y, max_depth=100)] == [100, 100, 100]
    assert len(fused(y, max_depth=1)) == 300


@pytest.mark.parametrize("name", ["take", "gather_nd"])
def test_look_ups(name):
    x, index = var("x", (4, 1, 3)), var("i", (1, 2), "int32")
    data = op.squeeze(x, axis=1)
    found = (
        op.take(data, op.abs(index), axis=0)
        if name == "take"
        else op.gather_nd(op.reshape(data, newshape=(12,)), op.abs(index))
    )
    assert len(fused(op.exp(found))) == 1


def test_a_reduction_of_one_number():
    x = var("x", (), "int32")
    assert fused(op.min(op.cast(op.less_equal(x, 4), dtype="int32"))) == [
        ["less_equal", "cast", "min"]
    ]


def test_elementwise_operators_join_a_reduction_and_leave_it():
    x = var("x", (4, 6))
    total = op.sum(op.exp(x), axis=1)
    assert fused(total) == [["exp", "sum"]]
    assert fused(op.sqrt(total)) == [["exp", "sum"], ["sqrt"]]


def test_softmax_takes_in_a_cast():
    x = var("x", (4, 6))
    assert fused(op.cast(op.nn.softmax(x), dtype="float16")) == [["softmax", "cast"]]


def test_a_diamond():
    x = var("x", (1, 4, 5, 5))
    made = op.nn.relu(op.nn.conv2d(x, var("w", (4, 4, 3, 3)), padding=1))
    assert fused(op.add(op.exp(made), op.sqrt(made))) == [["conv2d", "relu", "exp", "sqrt", "add"]]


def test_a_residual_sum_joins_one_of_two_convolutions():
    x = var("x", (1, 4, 5, 5))
    a = op.nn.conv2d(x, var("a", (4, 4, 3, 3)), padding=1)
    b = op.nn.conv2d(x, var("b", (4, 4, 1, 1)))
    groups = fused(op.nn.relu(op.add(a, b)))
    assert sorted(map(len, groups)) == [1, 3]


def test_nothing_joins_the_input_of_a_convolution():
    x = var("x", (1, 4, 5, 5))
    padded = op.nn.pad(x, pad_width=((0, 0), (0, 0), (1, 1), (1, 1)))
    out = op.nn.conv2d(padded, var("w", (4, 4, 3, 3)))
    assert fused(op.transpose(out)) == [["pad"], ["conv2d"], ["transpose"]]


def test_a_value_with_two_uses_that_never_meet_is_stored():
    x = var("x", (3, 4))
    shared = op.exp(x)
    out = Tuple((op.sqrt(shared), op.tanh(shared)))
    assert fused(out) == [["exp"], ["sqrt"], ["tanh"]]


def test_the_module_stays_as_it_was():
    x = var("x", (3, 4))
    module = Module.from_expr(op.exp(op.sqrt(x)))
    before = module.structural_hash()
    fuse_ops(module)
    assert module.structural_hash() == before
    assert module.log == ()
