"""Reductions on a GPU by several blocks for each result, and a second kernel."""

import random

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import ops, te
from dlcompiler.ops import reductions
from dlcompiler.ops.reduction import FUNCTIONS
from dlcompiler.pipeline import lower
from dlcompiler.target import resolve
from tests.ops.products import check

REDUCTION = ops.operator("reduction")
GPU = resolve("mali-t860")
"""It has four multiprocessors, so that several blocks share a result of a small array, too."""
SHAPES = [((1031,), "all"), ((1031, 3), 0), ((3, 1031), 1), ((2, 1031, 5), 1), ((33, 65), "all")]
FEW = [("sum", *SHAPES[1]), ("std", *SHAPES[0]), ("argmax", *SHAPES[0])]


def in_parts(workload, choose):
    """Return a config in which several blocks share a result."""
    space = REDUCTION.space(workload, GPU)
    return choose.choice([cfg for cfg in map(space.at, space.allowed()) if cfg["blocks"] > 1])


def computed_right(function, shape, axes, **options):
    choose = random.Random(f"{function} {shape}")
    workload = REDUCTION.workload(function=function, shape=shape, axes=axes, **options)
    check(REDUCTION, workload, in_parts(workload, choose), target=GPU)


@pytest.mark.parametrize(
    ("function", "shape", "axes"),
    [("sum", (187, 3000), "all"), ("mean", (3, 300_000), 1), ("argmax", (300_000, 3), 0)],
)
def test_the_default_of_a_large_operand_has_parts_and_is_legal(function, shape, axes):
    target = resolve("h100")
    workload = REDUCTION.workload(function=function, shape=shape, axes=axes)
    cfg = REDUCTION.default_config(workload, target)
    assert cfg["blocks"] > 1
    schedule, args = REDUCTION.template(workload, target, cfg)
    lower(schedule, args, target=target)


@pytest.mark.parametrize(("function", "shape", "axes"), FEW)
def test_some_have_the_right_values(function, shape, axes):
    computed_right(function, shape, axes)


@pytest.mark.campaign
@pytest.mark.parametrize(("shape", "axes"), SHAPES, ids=str)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_all_have_the_right_values(function, shape, axes):
    dtype = random.Random(f"{function} {shape}").choice(FUNCTIONS[function].dtypes)
    computed_right(function, shape, axes, dtype=dtype, keepdims=len(dtype) % 2)


@pytest.mark.parametrize(
    ("reduce", "expected"), [(reductions.sum, np.sum), (reductions.argmax, np.argmax)]
)
def test_a_fused_operand_and_a_fused_result(reduce, expected):
    A = te.placeholder((1031, 3), "int32", name="A")
    shifted = te.compute(A.shape, lambda i, j: A[i, j] - 5, name="shifted")
    reduced = reduce(shifted, 0)
    doubled = te.compute((3,), lambda j: reduced[j] * 2, name="doubled")
    s = te.create_schedule(doubled.op)
    workload = REDUCTION.workload(function="sum", shape=(1031, 3), axes=0, dtype="int32")
    REDUCTION.schedule_for(GPU).apply(s, [doubled], in_parts(workload, random.Random(3)), GPU)
    data = np.random.default_rng(3).integers(-100, 100, A.static_shape, "int32")
    result = np.zeros(3, doubled.dtype)
    dlc.build(s, [A, doubled], GPU)(data, result)
    np.testing.assert_array_equal(result, 2 * expected(data - 5, axis=0))
