"""Kernels of C: built, called, saved; random schedules; what is refused."""

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.errors import CallError, ScheduleError, TargetError, UserError
from dlcompiler.pipeline import CKernel, build
from dlcompiler.runtime.c_source import c_compiler
from tests.fuzz.checks import LIMITS, UNKNOWN, Oracle, case_of, check_kernel, stored

needs_compiler = pytest.mark.skipif(c_compiler() is None, reason="no C compiler on this machine")


def _doubled():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
    return te.create_schedule(B.op), [A, B]


def test_a_kernel_shows_and_saves_its_source(tmp_path):
    kernel = dlc.build(*_doubled(), target="c", name="doubled")
    assert isinstance(kernel, CKernel)
    assert kernel.source().startswith(kernel.header)
    assert kernel.symbol == "doubled"
    assert not kernel.uses_threads
    source, header = kernel.save(tmp_path)
    assert source.read_text() == kernel.source()
    assert header.name == "doubled.h"
    assert "C, to be compiled alone" in kernel._repr_html_()
    with pytest.raises(UserError, match="no such folder"):
        kernel.save(tmp_path / "nowhere")


def test_the_program_has_no_vectors():
    s, args = _doubled()
    s[args[-1]].vectorize(s[args[-1]].op.axis[0])
    assert str(dlc.lower(s, args, target="c")) == (
        "def main(A: float32[8], B: float32[8]):\n"
        "    for i in range(8):  # vectorized = 1\n"
        "        B[i] = A[i]*2.0\n"
    )


@needs_compiler
def test_calls_are_checked():
    n = te.var("n")
    A = te.placeholder((n, 2), "int8", name="A")
    B = te.compute((n,), lambda i: A[i, 0] * A[i, 1], name="B")
    kernel = dlc.build(te.create_schedule(B.op), [A, B], "c")
    a, b = np.full((3, 2), 100, "int8"), np.zeros(3, "int8")
    kernel(a, b)
    assert b.tolist() == [16] * 3  # 10,000 wraps
    with pytest.raises(CallError, match="n is both 3 and 2"):
        kernel(a, b[:2])
    with pytest.raises(CallError, match="wrong dtype"):
        kernel(a.astype("int16"), b)


@pytest.mark.parametrize(
    "ask",
    [
        lambda s, args: dlc.measure(dlc.build(s, args, "c")),
        lambda s, args: dlc.cross_compile(s, args, "c"),
    ],
)
def test_what_needs_llvm_is_refused(ask):
    with pytest.raises(TargetError) as caught:
        ask(*_doubled())
    assert str(caught.value) == (
        "compile for c: its code is not LLVM IR\n"
        "  got       language 'c'\n"
        "  hint      target='cpu' is machine code, to be verified, measured and tuned"
    )


@needs_compiler
@pytest.mark.parametrize("dtype", ["int8", "uint64", "float16", "bfloat16", "float32", "float64"])
def test_c_is_verified(dtype):
    A = te.placeholder((7, 5), dtype, name="A")
    B = te.compute((7, 5), lambda i, j: A[i, j] * A[i, j] + A[i, j], name="B")
    s = te.create_schedule(B.op)
    s[B].vectorize(B.op.axis[1])
    found = dlc.verify(s, [A, B], target="c")
    assert found.oracles == ("numpy", "interpreter")


@pytest.mark.campaign
@needs_compiler
@pytest.mark.parametrize("seed", range(6))
def test_random_schedules(seed):
    for number in range(3000 + 12 * seed, 3012 + 12 * seed):
        case = case_of(number)
        schedule = case.schedule()
        results = stored(case, schedule)
        try:
            kernel = build(schedule, [*case.expression.inputs, *results], "c")
        except ScheduleError as error:
            if any(text in str(error) for text in (*LIMITS, UNKNOWN)):
                continue
            raise
        for values in case.expression.sizes(case.seed):
            check_kernel(Oracle(case, results, values), kernel, kernel.func)
