"""Gradients of classic operators, against finite differences."""

import pytest

from dlcompiler import te
from dlcompiler.compat.tvm import topi
from tests.te.gradients import check_gradient

nn = topi.nn


def tensor(name, *shape, dtype="float64"):
    return te.placeholder(shape, dtype, name=name)


LAYERS = {
    "softmax": lambda: nn.softmax(tensor("A", 3, 5)),
    "log_softmax": lambda: nn.log_softmax(tensor("A", 3, 5)),
    "dense": lambda: nn.dense(tensor("A", 3, 5), tensor("W", 4, 5), tensor("b", 4)),
    "conv2d": lambda: nn.conv2d_nchw(tensor("X", 1, 2, 5, 5), tensor("W", 3, 2, 3, 3), 2, 1, 1),
    "dilated": lambda: nn.conv2d_nchw(tensor("X", 1, 2, 6, 6), tensor("W", 3, 2, 3, 3), 1, 2, 2),
    "depthwise": lambda: nn.depthwise_conv2d_nchw(
        tensor("X", 1, 2, 5, 5), tensor("W", 2, 1, 3, 3), 1, 1, 1
    ),
    "leaky_relu": lambda: nn.leaky_relu(tensor("A", 3, 5) - 1.0, 0.1),
    "flatten": lambda: nn.flatten(tensor("A", 2, 3, 4) * 2.0),
    "transpose": lambda: topi.transpose(tensor("A", 2, 3, 4), (2, 0, 1)),
    "reshape": lambda: topi.reshape(tensor("A", 2, 3, 4), (6, 4)),
    "concatenate": lambda: topi.concatenate((tensor("A", 2, 3), tensor("B", 2, 4)), axis=1),
    "stack": lambda: topi.stack([tensor("A", 2, 3), tensor("B", 2, 3)], 0),
    "pad": lambda: nn.pad(tensor("A", 2, 3), (1, 2), (0, 1)),
    "sum": lambda: topi.sum(tensor("A", 2, 3, 4), axis=(0, 2)),
    "max": lambda: topi.max(tensor("A", 2, 3, 4), axis=(0, 2)),
    "prod": lambda: topi.prod(tensor("A", 2, 3, 2), axis=(0, 2)),
    "max pool": lambda: nn.pool2d(
        tensor("X", 1, 2, 6, 6), [2, 2], [2, 2], [1, 1], [0, 0, 0, 0], "max"
    ),
    "average pool": lambda: nn.pool2d(
        tensor("X", 1, 2, 6, 6), [3, 3], [2, 2], [1, 1], [1, 1, 1, 1], "avg"
    ),
    "where": lambda: topi.where(
        tensor("C", 2, 3, dtype="int32"), tensor("A", 2, 3), tensor("B", 2, 3)
    ),
    "batch_matmul": lambda: nn.batch_matmul(tensor("A", 2, 2, 3), tensor("B", 2, 4, 3)),
}


@pytest.mark.campaign
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    check_gradient(LAYERS[name](), everywhere=False)
