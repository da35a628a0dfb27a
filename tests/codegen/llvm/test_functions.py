"""Functions of our own: the errors that are stated, on every 257th float32 and where it is hard."""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.codegen.llvm.functions import MAX_ULPS, MAX_ULPS_ALONE
from dlcompiler.ir.functions import FUNCTION_ULPS, FUNCTIONS
from dlcompiler.pipeline import cross_compile
from tests import minimax
from tests.fuzz.accuracy import (
    CHUNK,
    REFERENCES,
    kernel,
    pairs_near_powers,
    patterns,
    ulps_of_float64,
    worst,
)
from tests.scalars.agreement import edge_values, pairs

PAGE = Path(__file__).parents[3] / "docs/MATH.md"
OF_ONE = sorted(set(MAX_ULPS["float32"]) - {"pow"})
TARGETS = ("cpu", "x86-64-sse2")
"""With FMA instructions and without."""
_EVERY_257TH = np.concatenate([edge_values("float32"), patterns(0, 2**32 // 257, 257)])


@pytest.mark.campaign
@pytest.mark.parametrize("name", OF_ONE)
def test_every_257th_number(name):
    found = worst(name, kernel(name, CHUNK), _EVERY_257TH)
    assert found.ulps <= MAX_ULPS["float32"][name], found


@pytest.mark.campaign
@pytest.mark.parametrize("name", OF_ONE)
def test_without_fma(name):
    found = worst(name, kernel(name, CHUNK, target="x86-64-sse2"), _EVERY_257TH[::8])
    assert found.ulps <= MAX_ULPS["float32"][name], found


@pytest.mark.parametrize("target", TARGETS)
def test_powers(target):
    compute = kernel("pow", CHUNK, target=target)
    for arguments in (pairs("float32", "float32"), pairs_near_powers(1, 2**19)):
        found = worst("pow", compute, *arguments)
        assert found.ulps <= MAX_ULPS["float32"]["pow"], found


@pytest.mark.campaign
@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="no format beyond float64 here")
@pytest.mark.parametrize("name", sorted(MAX_ULPS["float64"]))
@pytest.mark.parametrize("target", TARGETS)
def test_float64(name, target):
    random = np.random.default_rng(5)
    bits = random.integers(0, 2**64, CHUNK, dtype=np.uint64).view(np.float64)
    parts = [edge_values("float64"), bits, *(random.uniform(-r, r, CHUNK) for r in (1, 3, 40, 760))]
    values = np.concatenate(parts)
    got = np.empty_like(values)
    kernel(name, len(values), 4, dtype="float64", target=target)(values, got)
    with np.errstate(all="ignore"):
        errors = ulps_of_float64(got, REFERENCES[name](values.astype(np.longdouble)))
    n = int(np.argmax(errors))
    assert errors[n] <= MAX_ULPS["float64"][name], (errors[n], values[n])


# Of all float32, those nearest to a multiple of pi/2, and large ones.
HARD_ANGLES = [
    *(16367173.0 * 2.0**72, 11527541.0, 16777215.0 * 2.0**104, 2.0**20, 2.0**20 - 0.0625, 2.0**127),
    *(n * math.pi / 2 for n in (1, 2, 3, 4, 355, 710, 100000, 2**20, 10**9)),
]


@pytest.mark.parametrize("name", ["sin", "cos"])
@pytest.mark.parametrize("target", TARGETS)
def test_hard_angles(name, target):
    values = np.array([s * x for x in HARD_ANGLES for s in (1, -1)], np.float32)
    for lanes in (1, 8):
        found = worst(name, kernel(name, CHUNK, lanes, target=target), values)
        assert found.ulps <= MAX_ULPS["float32"][name], found


EXACT = {
    "cos": [(0.0, 1.0)],
    "erf": [(-0.0, -0.0), (4.0, 1.0), (-np.inf, -1.0)],
    "exp": [(0.0, 1.0), (-0.0, 1.0), (-np.inf, 0.0), (np.inf, np.inf), (-200.0, 0.0)],
    "exp10": [(0.0, 1.0), (np.inf, np.inf)],
    "exp2": [(float(n), 2.0**n) for n in range(-149, 128)],
    "log": [(1.0, 0.0), (0.0, -np.inf), (-0.0, -np.inf), (np.inf, np.inf), (-1.0, np.nan)],
    "log10": [(1.0, 0.0)],
    "log1p": [(-0.0, -0.0), (-1.0, -np.inf), (-2.0, np.nan), (1e-45, 1e-45)],
    "log2": [(2.0**n, float(n)) for n in range(-149, 128)],
    "sigmoid": [(0.0, 0.5), (-np.inf, 0.0), (np.inf, 1.0)],
    "sin": [(-0.0, -0.0), (1e-45, 1e-45), (np.inf, np.nan)],
    "tanh": [(-0.0, -0.0), (1e-45, 1e-45), (-20.0, -1.0), (np.inf, 1.0)],
}


@pytest.mark.parametrize("name", EXACT)
def test_exact_results(name):
    given, right = (np.array(column, np.float32) for column in zip(*EXACT[name], strict=True))
    for lanes in (1, 4):
        got = np.empty_like(given)
        kernel(name, len(given), lanes)(given, got)
        np.testing.assert_array_equal(got, right)
        assert (np.isnan(right) | (np.signbit(got) == np.signbit(right))).all()


OWN = [(name, dtype) for dtype in MAX_ULPS for name in MAX_ULPS[dtype]]


@pytest.mark.campaign
@pytest.mark.parametrize(("name", "dtype"), OWN)
@pytest.mark.parametrize("target", TARGETS)
def test_a_lane_is_a_scalar(name, dtype, target):
    count = 5003
    random = np.random.default_rng(3)
    whole = f"u{np.dtype(dtype).itemsize}"
    bits = random.integers(0, np.iinfo(whole).max, (FUNCTIONS[name].arity, count), dtype=whole)
    moderate = random.uniform(-40, 40, bits.shape).astype(dtype)
    given = np.where(random.random(bits.shape) < 0.5, bits.view(dtype), moderate)
    results = np.empty((3, count), dtype)
    for lanes, result in zip((1, 2, 16), results, strict=True):
        kernel(name, count, lanes, dtype=dtype, target=target)(*given, result)
    nan = np.isnan(results)
    assert (nan == nan[0]).all()
    assert (results.view(whole) == results[0].view(whole))[~nan].all()


def test_a_function_is_written_once_and_copied_a_few_times():
    X = te.placeholder((16, 8), name="X")
    Y = te.compute((16, 8), lambda i, j: te.exp(X[i, j]), name="Y")
    s = te.create_schedule(Y.op)
    i, j = s[Y].op.axis
    s[Y].unroll(i)
    s[Y].vectorize(j)
    built = dlc.build(s, [X, Y], target="x86-64-avx2")
    calls = [line for line in built.source().splitlines() if "@dlc_exp_float32x8" in line]
    assert [line.startswith("define internal") for line in calls].count(True) == 1
    assert len(calls) == 1 + 16
    assert 4 <= sum(" noinline," in line for line in calls) <= 12


def test_code_of_a_function_has_the_line_of_its_statement():
    X = te.placeholder((64,), name="X")
    Y = te.compute((64,), lambda i: te.exp(X[i]), name="Y")
    s = te.create_schedule(Y.op)
    s[Y].vectorize(s[Y].split(Y.op.axis[0], factor=8)[1])
    built = dlc.build(s, [X, Y], target="x86-64-avx2")
    line, lines = 0, set()
    for text in built.assembly.splitlines():
        line = int(text.split()[2]) if text.startswith("\t.loc") else line
        if text.startswith("\tvf"):
            lines.add(line)
    (store,) = [n for n, text in enumerate(str(built.func).splitlines(), 1) if "exp" in text]
    assert lines == {store}


NEEDS = {"aarch64": set(), "armv7": {"__aeabi_l2d", "truncf"}, "riscv64": set(), "wasm32": set()}


@pytest.mark.parametrize("target", NEEDS)
def test_other_machines_need_no_library(target):
    X = te.placeholder((64,), name="X")
    names = [name for name in OF_ONE if name not in ("cos", "exp2", "exp10", "log2", "log10")]
    functions = [*(getattr(te, name) for name in names), lambda x: te.power(x, x)]
    outputs = [te.compute((64,), lambda i: f(X[i]), name="Y") for f in functions]  # noqa: B023
    s = te.create_schedule([Y.op for Y in outputs])
    for Y in outputs:
        s[Y].vectorize(s[Y].split(Y.op.axis[0], factor=4)[1])
    assert set(cross_compile(s, [X, *outputs], target).needs) <= NEEDS[target]


def test_stated_errors_are_within_those_of_the_language():
    tables = (*MAX_ULPS.values(), MAX_ULPS_ALONE)
    stated = itertools.chain.from_iterable(table.values() for table in tables)
    assert max(stated) <= FUNCTION_ULPS


def test_the_page_says_what_is_stated():
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    stated = [
        (name, table[name])
        for table in (*MAX_ULPS.values(), MAX_ULPS_ALONE)
        for name in sorted(table)
    ]
    assert [(name, float(ulps)) for name, ulps in rows] == stated


@pytest.mark.campaign
def test_coefficients_are_those_of_the_tool():
    assert minimax.FILE.read_text(encoding="utf-8") == minimax.text()
