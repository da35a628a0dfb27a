"""What compilers say of sources: nothing, however silly the program, even where they are asked."""

import itertools
import os
import random
import shutil
import subprocess

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import dtypes, te
from dlcompiler.pipeline import emit_source
from dlcompiler.runtime.c_source import COMPILERS
from tests.scalars.agreement import DATA, agree, edge_values
from tests.scalars.drawn_expressions import drawn

WARNINGS = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-Wshadow")
NUMBERS = tuple(name for name in DATA if name != "bool")


def _compiles(text, folder):
    """Compile a source by each compiler of this machine, with and without optimisation."""
    (folder / "silly.c").write_text(text)
    found = {os.path.realpath(path) for name in COMPILERS if (path := shutil.which(name))}
    if not found:
        pytest.skip(f"no C compiler: none of {', '.join(COMPILERS)} is on the PATH")
    for compiler, level in itertools.product(sorted(found), ("-O0", "-O2")):
        command = (compiler, "-std=c99", *WARNINGS, level, "-c", "-o", "/dev/null", "silly.c")
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{compiler} {level}: {done.stderr}"


def _source(inputs, functions):
    outputs = [
        te.compute((8,), lambda i: function(i, *(x[i] for x in inputs)), name=f"Y{n}")  # noqa: B023
        for n, function in enumerate(functions)
    ]
    s = te.create_schedule([output.op for output in outputs])
    used = [x for x in inputs if any(x in output.op.input_tensors for output in outputs)]
    return emit_source(s, [*used, *outputs], "c", "silly")[0].text


def _of_integers(dtype):
    number = lambda value: te.const(value, dtype)  # noqa: E731
    low, high = int(dtypes.min_value(dtype)), int(dtypes.max_value(dtype))
    return {
        "bits_set": lambda x: te.bitwise_or(x, number(7)) != 0,
        "bits_missing": lambda x: te.bitwise_and(x, number(7)) == 8,
        "all_bits": lambda x: te.bitwise_xor(x, number(-1 if low else high)) == 1,
        "itself": lambda x: te.all(x == x, x <= x),
        "not_itself": lambda x: te.any(x != x, x < x, x > x),
        "above_all": lambda x: te.any(x > number(high), x < number(low)),
        "not_below": lambda x: te.all(x >= number(low), x <= number(high)),
        "two_places": lambda x: te.all(x < 3, x > 5),
        "anywhere": lambda x: te.any(x != 1, x != 2),
        "widened": lambda x: x.astype("int64") < number(high).astype("int64") + 1,
        "by_zero": lambda x: te.floordiv(x, x - x) + te.truncmod(x, x - x),
        "far": lambda x: te.left_shift(x, x - x + 100) + te.right_shift(number(high), x),
        "beyond": lambda x: x + number(high) + number(high),
        "least": lambda x: te.truncdiv(number(low), number(-1)) + x if low else x,
        "as_condition": lambda x: x.astype("bool").astype(dtype) < number(100),
        "nothing": lambda x: te.select(x == x, x, x) - x,
    }


def _of_floats(dtype):
    number = lambda value: te.const(value, dtype)  # noqa: E731
    tiny = float(edge_values(dtype)[2])
    return {
        "itself": lambda x: te.any(x != x, x == x),
        "two_places": lambda x: te.all(x < 3, x > 5),
        "by_zero": lambda x: x / number(0.0) + number(1.0) / number(-0.0),
        "nan": lambda x: x < number(float("nan")),
        "infinity": lambda x: te.minimum(x, number(float("-inf"))),
        "tiny": lambda x: x * number(tiny),
        "converted": lambda x: number(1e4).astype("int8") + x.astype("int8"),
        "narrow": lambda x: number(1e4).astype("float16").astype(dtype) + x,
        "tests": lambda x: te.isnan(x) == te.isnan(x),
        "nothing": lambda x: te.select(te.isnan(x), x, x) - x,
    }


@pytest.mark.campaign
@pytest.mark.parametrize("dtype", NUMBERS)
def test_silly_expressions(dtype, tmp_path):
    functions = (_of_floats if dtypes.is_float(dtype) else _of_integers)(dtype)
    X = te.placeholder((8,), dtype, name="X")
    _compiles(_source([X], [lambda i, x, f=f: f(x) for f in functions.values()]), tmp_path)
    agree(functions, [edge_values(dtype)])


def test_silly_conditions(tmp_path):
    functions = {
        "both": lambda a, b: te.all(a, a),
        "never": lambda a, b: te.all(a, te.bitwise_not(a)),
        "always": lambda a, b: te.any(a, te.bitwise_not(a)),
        "constant": lambda a, b: te.select(te.const(True, "bool"), a, b),
        "ordered": lambda a, b: te.any(a < a, a >= a),
        "number": lambda a, b: a.astype("int32") == 2,
        "large": lambda a, b: a.astype("int8") < 16,
        "unused": lambda a, b: te.bitwise_xor(b, b),
        "mixed": lambda a, b: te.bitwise_and(a, b) == te.bitwise_or(a, b),
    }
    A, B = (te.placeholder((8,), "bool", name=name) for name in "AB")
    given = [lambda i, a, b, f=f: f(a, b) for f in functions.values()]
    places = [
        lambda i, a, b: te.all(i < 3, i > 5, a),
        lambda i, a, b: te.if_then_else(te.any(i != 1, i != 2), a, b),
        lambda i, a, b: te.if_then_else(i // 8 < 1, a, b),
        lambda i, a, b: i.astype("uint8") >= te.const(0, "uint8"),
    ]
    _compiles(_source([A, B], [*given, *places]), tmp_path)


@te.hybrid.script
def _silly_script(a):
    c = output_tensor((8,), "int32")  # noqa: F821
    unused = allocate((4,), "int32", "local")  # noqa: F821
    for i in range(8):
        c[i] = 0
        c[i] = c[i]
        number = a[i]
        if 1 < 0:
            c[i] = number
        if a[i] == a[i] and a[i] < 3 and a[i] > 5:
            c[i] += 3
        for j in range(0):
            c[i] = c[i] + j + unused[0]
    return c


def test_silly_statements(tmp_path):
    A = te.placeholder((8,), "int32", name="A")
    C = _silly_script(A)
    _compiles(emit_source(te.create_schedule(C.op), [A, C], "c", "silly")[0].text, tmp_path)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(4))
def test_random_expressions(seed, tmp_path):
    choose = random.Random(seed)
    inputs = [te.placeholder((8,), dtype, name=f"X{dtype}") for dtype in DATA]
    functions = [drawn(choose) for _ in range(50)]
    _compiles(_source(inputs, [lambda i, *x, f=f: f(*x) for f in functions]), tmp_path)


def test_what_always_holds_is_called(compiler):
    del compiler
    A = te.placeholder((3,), "int32", name="A")
    B = te.compute((3,), lambda i: te.bitwise_or(A[i], 7) != 0, name="B")
    kernel = dlc.build(te.create_schedule(B.op), [A, B], target="c")
    out = np.zeros(3, bool)
    kernel(np.array([0, -8, 7], "int32"), out)
    assert out.all()
