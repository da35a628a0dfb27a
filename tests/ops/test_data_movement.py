"""ops: transpose, pad and concatenate, exactly as NumPy does them."""

import dataclasses
import os

import pytest

from dlcompiler import ops, te
from dlcompiler.errors import TuningError
from dlcompiler.measurement import verify
from dlcompiler.ops.injective import schedule_injective
from dlcompiler.ops.movement import DTYPES
from dlcompiler.pipeline import lower
from dlcompiler.target import resolve
from tests.ops.products import check, choices

TRANSPOSE, PAD, CONCATENATE = map(ops.operator, ("transpose", "pad", "concatenate"))
CPU = dataclasses.replace(resolve("cpu"), cores=2)
IS_FULL = bool(os.environ.get("DLCOMPILER_TEST_FULL"))
TRANSPOSED = {
    "shape_axes": (
        *(("scalar", ""), ("7", "0"), ("5x67", "1,0"), ("67x33", "1,0"), ("0x3", "1,0")),
        *(
            ("2x3x5x7", "0,2,3,1"),
            ("2x17x3x20", "0,3,1,2"),
            ("3x40x41", "2,1,0"),
            ("3x4x5", "1,0,2"),
        ),
        ("1x1x9", "2,0,1"),
    ),
    "dtype": DTYPES if IS_FULL else ("float32", "float64", "float16", "int8", "bool"),
}
PADDED = {
    "sizes": (
        *(("7", "0", "0"), ("7", "3", "100"), ("5x67", "1,2", "0,3"), ("5x67", "-2,-1", "-1,-60")),
        *(("5x67", "-1,3", "2,-3"), ("0x3", "2,1", "0,1"), ("2x3x5x7", "0,0,1,1", "0,0,1,1")),
        ("1x1", "0,0", "0,40"),
    ),
    "mode": ("constant", "edge", "reflect"),
    "dtype": ("float32", "int8", "float64", "bool", "uint16"),
}
JOINED = {
    "shapes": ("5,7", "0,3", "5x67,5x67", "5x67,3x67,1x67", "2x3x4,2x3x4", "1x33,0x33"),
    "axis": (0, 1, -1),
    "dtype": ("float32", "int8", "float64", "bool", "bfloat16"),
}


@pytest.mark.campaign
@pytest.mark.parametrize("choice", choices(TRANSPOSED), ids=str)
def test_transpositions(choice):
    shape, axes = choice["shape_axes"]
    check(TRANSPOSE, TRANSPOSE.workload(shape=shape, axes=axes, dtype=choice["dtype"]))


def _is_defined(choice):
    if choice["mode"] == "constant":
        return True
    extents, first, last = (text.replace("x", ",").split(",") for text in choice["sizes"])
    return all(
        max(int(a), int(b)) <= 0 or max(int(a), int(b)) < int(n)
        for n, a, b in zip(extents, first, last, strict=True)
    )


@pytest.mark.campaign
@pytest.mark.parametrize("choice", choices(PADDED, _is_defined), ids=str)
def test_borders(choice):
    shape, before, after = choice.pop("sizes")
    check(PAD, PAD.workload(shape=shape, before=before, after=after, **choice))


def _fits(choice):
    shapes = [text.split("x") for text in choice["shapes"].split(",")]
    if choice["axis"] == 1 and len(shapes[0]) == 1:
        return False
    n = choice["axis"] % len(shapes[0])
    return len({tuple(shape[:n] + shape[n + 1 :]) for shape in shapes}) == 1


@pytest.mark.campaign
@pytest.mark.parametrize("choice", choices(JOINED, _fits), ids=str)
def test_joining(choice):
    check(CONCATENATE, CONCATENATE.workload(**choice))


def test_a_stage_may_have_another_name_than_its_tensor():
    A = te.placeholder((7,), name="A")
    B = te.compute((7,), lambda i: A[i] + 1, name="B")
    C = te.compute((7,), lambda i: B[i] * 2, name="B")
    s = te.create_schedule(C.op)
    assert s[C].name != C.name
    schedule_injective(s, C, CPU)
    verify(s, [A, C])


@pytest.mark.parametrize("axis", [0, 1])
def test_each_of_many_parts_is_copied_by_its_own_loop(axis):
    workload = CONCATENATE.workload(shapes=",".join(["9x9"] * 5), axis=axis)
    space = CONCATENATE.space(workload, CPU)
    known = CONCATENATE.default_config(workload, CPU).values
    assert known["by_case"]
    for more in ({}, {"parallel": True, "steps": 2}, {"by_case": False}):
        check(CONCATENATE, workload, space.config(**{**known, **more}), target=CPU)


@pytest.mark.parametrize(("shape", "axis"), [("2x3x16", 1), ("2x16x3", 0), ("3x32", 1)])
def test_no_condition_is_left_where_parts_are_whole_vectors(shape, axis):
    workload = CONCATENATE.workload(shapes=",".join([shape] * 6), axis=axis)
    config = CONCATENATE.default_config(workload, CPU)
    program = lower(*CONCATENATE.template(workload, CPU, config), target=CPU)
    assert "if_then_else" not in str(program)
    assert "select" not in str(program)
    check(CONCATENATE, workload)


@pytest.mark.parametrize(
    ("operator", "parameters"),
    [
        (TRANSPOSE, {"shape": "3x4", "axes": "0,0"}),
        (TRANSPOSE, {"shape": "3x4", "axes": "0"}),
        (PAD, {"shape": "3", "before": "1,1", "after": "1"}),
        (PAD, {"shape": "3", "before": "-2", "after": "-2"}),
        (PAD, {"shape": "3", "before": "3", "after": "0", "mode": "reflect"}),
        (PAD, {"shape": "3", "before": "1", "after": "1", "mode": "wrap"}),
        (CONCATENATE, {"shapes": "3x4,3x5", "axis": 0}),
    ],
    ids=str,
)
def test_refusals(operator, parameters):
    with pytest.raises(TuningError):
        operator.workload(**parameters)


@pytest.mark.parametrize("before", [(1.5, 2), ("1", 2), b"12", 5, None])
def test_widths_that_are_no_numbers(before):
    with pytest.raises(TuningError, match="workload of pad"):
        ops.operator("pad").workload(shape=(4, 4), before=before, after=(0, 0))
