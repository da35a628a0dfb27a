"""Arrays between pages that nothing may touch, and what is found with them.

Costs about 5 s: some eighty candidates, most of which crash.
"""

import subprocess
import sys

import numpy as np
import pytest

from dlcompiler import dtypes
from dlcompiler.measurement.bench import CandidateBench
from dlcompiler.measurement.candidates import Candidate
from dlcompiler.measurement.correctness import Case, CorrectnessTest
from dlcompiler.measurement.guarded import guarded, guarded_copy
from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.sampling import Effort
from dlcompiler.runtime.source import Interface, Source, Text
from dlcompiler.target import resolve
from tests.build_cycles import mappings

CPU = resolve("cpu")


@pytest.mark.parametrize("place", ["begin", "end", "aligned"])
@pytest.mark.parametrize(("shape", "dtype"), [((3, 5), "float32"), ((7,), "int8"), ((), "float64")])
def test_an_array_is_ordinary_memory(place, shape, dtype):
    array = guarded(shape, dtype, place)
    assert (array.shape, array.dtype) == (shape, np.dtype(dtype))
    assert not array.any()
    array[...] = 3
    assert (array == 3).all()
    address, end = array.ctypes.data, array.ctypes.data + array.nbytes
    assert {"begin": address % 4096, "end": end % 4096, "aligned": address % 64}[place] == 0
    assert guarded((0, 4), dtype, place).size == 0


def test_a_copy_has_the_values():
    values = np.arange(2000, dtype=np.int16).reshape(40, 50)
    for place in ("begin", "end", "aligned"):
        np.testing.assert_array_equal(guarded_copy(values, place), values)
        assert guarded_copy(values[:0], place).size == 0


TOUCH = """
import ctypes, sys
import numpy as np
from dlcompiler.measurement.guarded import guarded, guarded_copy
what, place, offset = sys.argv[1], sys.argv[2], int(sys.argv[3])
array = np.ones(5, np.float32)
array = guarded_copy(array, place) if what == "copy" else guarded((5,), np.float32, place)
if what == "copy":
    ctypes.memset(array.ctypes.data + offset, 0, 1)
else:
    ctypes.string_at(array.ctypes.data + offset, 1)
"""


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("what", "place", "offset", "is_allowed"),
    [
        ("read", "end", 19, True), ("read", "end", 20, False), ("read", "begin", -1, False),
        ("read", "begin", 0, True), ("copy", "begin", 0, False), ("copy", "aligned", 4, False),
    ],
)  # fmt: skip
def test_what_is_outside_cannot_be_touched_and_a_copy_not_be_written(
    what, place, offset, is_allowed
):
    done = subprocess.run([sys.executable, "-c", TOUCH, what, place, str(offset)], check=False)
    assert (done.returncode == 0) == is_allowed


def test_pages_go_with_their_array():
    before = mappings()
    for _ in range(100):
        guarded_copy(np.ones((3, 5)), "end")
    assert mappings() < before + 10


# -- an access of one element outside -----------------------------------------------------------

TYPES = {"int8": "i8", "float16": "half", "float32": "float", "float64": "double"}
SIZE = 13
KERNEL = """
define void @kernel(ptr %A, ptr %B, ptr %C) {{
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %skip ]
  %pa = getelementptr {type}, ptr %A, i64 %i
  %pb = getelementptr {type}, ptr %B, i64 %i
  %pc = getelementptr {type}, ptr %C, i64 %i
  %a = load {type}, ptr %pa
  %b = load {type}, ptr %pb
  %c = {add} {type} %a, %b
  %skipped = icmp eq i64 %i, {skipped}
  br i1 %skipped, label %skip, label %write
write:
  store {type} %c, ptr %pc
  br label %skip
skip:
  %next = add i64 %i, 1
  %again = icmp ult i64 %next, {size}
  br i1 %again, label %loop, label %end
end:
  %place = getelementptr {type}, ptr %{buffer}, i64 {offset}
  %value = load volatile {type}, ptr %place
  {store}
  ret void
}}
"""
STORE = "store volatile {type} %value, ptr %place"


def job(dtype, buffer="A", offset=0, store="", skipped=-1):
    name = TYPES[dtype]
    text = KERNEL.format(
        type=name, add="fadd" if dtypes.is_float(dtype) else "add", size=SIZE, skipped=skipped,
        buffer=buffer, offset=offset, store=store.format(type=name),
    )  # fmt: skip
    params = tuple(Param(name, (SIZE,), dtype, name == "C") for name in "ABC")
    source = Source("llvm", {"llvm": Text(text)}, Interface("kernel", params))
    return lambda: Candidate(source)


def addition(dtype):
    generator = np.random.default_rng(0)
    cases = []
    for _ in range(2):
        inputs = {
            name: generator.integers(-9, 9, SIZE).astype(dtypes.to_numpy(dtype)) for name in "AB"
        }
        wide = inputs["A"].astype(np.float64) + inputs["B"]
        cases.append(Case.of(inputs, {"C": wide}, {"C": np.zeros(SIZE)}, {"C": dtype}))
    return CorrectnessTest(cases)


@pytest.fixture(scope="module", params=TYPES)
def dtype(request):
    return request.param


@pytest.fixture(scope="module")
def bench(dtype):
    effort = Effort(least=3, budget_s=0.0)
    with CandidateBench(addition(dtype), CPU, effort=effort, overlap=True) as opened:
        yield opened


def outcomes(bench, jobs):
    found = {}
    bench.measure(jobs, None, found.__setitem__)
    return [found[number].outcome for number in range(len(jobs))]


@pytest.mark.campaign
def test_each_access_of_one_element_outside_is_found(bench, dtype):
    outside = [
        job(dtype, buffer, offset, store)
        for buffer in "ABC"
        for offset in (-1, SIZE)
        for store in ("", STORE)
    ]
    assert outcomes(bench, outside) == ["crashed"] * len(outside)
    inside = [job(dtype, buffer, offset) for buffer in "ABC" for offset in (0, SIZE - 1)]
    assert outcomes(bench, inside) == ["ok"] * len(inside)


@pytest.mark.campaign
def test_each_element_that_is_not_written_is_found(bench, dtype):
    jobs = [job(dtype, skipped=skipped) for skipped in range(SIZE)]
    assert outcomes(bench, jobs) == ["wrong answer"] * SIZE
