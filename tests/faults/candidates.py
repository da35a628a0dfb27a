"""Candidates as LLVM text, good and bad, of a kernel that doubles eight numbers."""

import numpy as np

from dlcompiler.measurement.bench import CandidateBench
from dlcompiler.measurement.candidates import Candidate, Ceiling
from dlcompiler.measurement.correctness import Case, CorrectnessTest
from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.sampling import Effort
from dlcompiler.runtime.source import Interface, Source, Text
from dlcompiler.target import resolve

CPU = resolve("cpu")
PARAMS = (Param("A", (8,), "float32", False), Param("C", (8,), "float32", True))
QUICK = Effort(budget_s=0.02)


def case(values):
    a = np.asarray(values, np.float32)
    wide = a.astype(np.float64)
    return Case.of({"A": a}, {"C": 2 * wide}, {"C": np.full(8, 1e-6)}, {"C": "float32"})


TEST = CorrectnessTest([case(np.arange(8)), case(-1.0 - np.arange(8))])

DECLARED = """
declare ptr @malloc(i64)
declare void @free(ptr)
declare void @llvm.trap()
@zero = internal global i32 0
@least = internal global i32 -2147483648
@minus = internal global i32 -1
"""
DOUBLE = """
  %a = load <8 x float>, ptr %A, align 4
  %c = fadd <8 x float> %a, %a
  store <8 x float> %c, ptr %C, align 4
"""
FOREVER = """
  br label %again
again:
  store volatile float 0.0, ptr %C
  br label %again
"""


def kernel(body, more=""):
    return f"define void @kernel(ptr %A, ptr %C) {{\n{body}\n}}\n{DECLARED}{more}"


GOOD = kernel(DOUBLE + "  ret void")


def job(text=GOOD, messages=()):
    called = Interface("kernel", PARAMS, messages=tuple(messages))
    source = Source("llvm", {"llvm": Text(text)}, called)
    return lambda: Candidate(source)


def open_bench(**options):
    given = {"ceiling": Ceiling(build_s=20.0, run_s=20.0), "effort": QUICK, "overlap": False}
    return CandidateBench(TEST, CPU, **{**given, **options})


def measured(bench, jobs):
    """Measure a batch; return the results in the order of the jobs."""
    found = {}
    bench.measure(jobs, None, found.__setitem__)
    assert sorted(found) == list(range(len(jobs))), "each is reported once"
    return [found[number] for number in range(len(jobs))]


def one(bench, *args):
    (result,) = measured(bench, [job(*args)])
    return result
