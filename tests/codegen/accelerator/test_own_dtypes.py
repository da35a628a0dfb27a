"""Elements of all dtypes in memories of an accelerator of one's own: values as `te.evaluate`'s."""

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.target import Accelerator, Engine, Memory, copy, tensor_op
from dlcompiler.target.accelerators import Instruction

SHAPE = (3, 5, 4)
FLOATS = [0.0, -0.0, 1.5, -2.25, 1e4, -3e4, np.inf, -np.inf, np.nan]


def checked(dtype, function=None, *, in_dram="", intrinsic=None):
    """Load two tensors, compute something of them, and store it."""
    operands = {"dst": "m", "src": "m"}
    alu = Instruction(
        "alu", "math", "elementwise", operands=operands, operations=("add", "mul", "shr")
    )
    more = [] if intrinsic is None else [tensor_op("math", intrinsic, cycles=int)]
    machine = Accelerator(
        "typed",
        [Memory("m", SHAPE[-1:], dtype, 64, in_dram)],
        [Engine("move"), Engine("math")],
        [copy("move", into="m"), copy("move", out_of="m"), alu, *more],
    )
    outside = in_dram or dtype
    inputs = [te.placeholder(SHAPE, outside, name=name) for name in "AB"]
    chip = [te.compute(SHAPE, lambda *i, t=t: t[i].astype(dtype), name=t.name * 2) for t in inputs]
    made = chip[0]
    if function is not None:
        made = te.compute(SHAPE, lambda *i: function(chip[0][i], chip[1][i]), name="made")
    out = te.compute(SHAPE, lambda *i: made[i].astype(outside), name="out")
    s = te.create_schedule(out.op)
    used = [chip[0]] if function is None else [*chip, made]
    for tensor in used:
        s[tensor].set_scope("typed.m")
    if intrinsic is not None:
        s[made].tensorize(made.op.axis[-1], intrinsic)
    read = inputs[: 1 if function is None else 2]
    kernel = dlc.build(s, [*read, out], target=machine)
    generator = np.random.default_rng(0)
    limits = FLOATS if outside.startswith("float") else np.iinfo(outside)
    if outside.startswith("float"):
        values = [generator.choice(np.array(limits, outside), SHAPE) for _ in read]
    else:
        values = [
            generator.integers(limits.min, limits.max, SHAPE, outside, endpoint=True) for _ in read
        ]
    expected = te.evaluate(out, dict(zip(read, values, strict=True)))
    kernel(*values, result := np.zeros(SHAPE, outside))
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint16", "uint32", "int64", "uint64"])
def test_shifts_to_the_left(dtype):
    checked(dtype, lambda a, b: (a << 5) + b)


@pytest.mark.parametrize(
    ("dtype", "in_dram"),
    [
        ("int8", "float32"), ("uint8", "float16"), ("int64", "float64"), ("float16", "uint32"),
        ("float32", "int32"), ("float32", "float16"), ("int32", "uint8"), ("int8", "int32"),
    ],
)  # fmt: skip
def test_copies_convert_as_casts_do(dtype, in_dram):
    checked(dtype, in_dram=in_dram)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_floats_without_warnings(dtype):
    checked(dtype, lambda a, b: a * b + a)


@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_casts_in_an_intrinsic(dtype):
    def mixed(a, b):
        return te.sqrt(a.astype("float32")).astype("int32").astype(dtype) + b

    a, b = (te.placeholder(SHAPE[-1:], dtype, name=name) for name in "ab")
    whole = te.compute(a.shape, lambda i: mixed(a[i], b[i]), name="whole")
    checked(dtype, mixed, intrinsic=te.decl_tensor_intrin(whole.op, lambda i, o: "mixed", "mixed"))
