"""`instrument_bounds`: what is outside stops the program, interpreted and in machine code."""

import textwrap

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.codegen import emit
from dlcompiler.codegen.interface import parameters
from dlcompiler.errors import ProgramError, ScheduleError
from dlcompiler.measurement import RemoteKernel
from dlcompiler.passes import instrument_bounds
from dlcompiler.pipeline import build, lower
from dlcompiler.runtime.function import Function
from dlcompiler.runtime.llvm import Options, compile_ir
from dlcompiler.schedule import create_schedule
from dlcompiler.simulate import interpret
from dlcompiler.target import resolve
from tests.passes.examples import after, keeps_results, shows
from tests.passes.reading import read


def loaded(text):
    func = instrument_bounds(read(textwrap.dedent(text)))
    machine = resolve("cpu")
    source = emit(func, machine)
    module = compile_ir(source.text, Options.for_target(machine, opt_level=1))
    messages = source.messages
    return func, Function(module, source.symbol, parameters(func), func.name, messages=messages)


def outcomes(text, *arrays):
    """Return what the interpreter and the machine code say of a call; None where it is right."""
    func, kernel = loaded(text)
    said = []
    for run in (lambda: interpret(func, arrays), lambda: kernel(*arrays)):
        try:
            run()
            said.append(None)
        except ProgramError as error:
            said.append(
                "" if error.kind != "assertion" else str(error).partition(": ")[2].splitlines()[0]
            )
    return said


def ones(*shape, dtype="float32"):
    return np.ones(shape, dtype)


def test_the_example_of_its_docstring():
    shows(instrument_bounds)


@pytest.mark.parametrize("kind", ["range", "parallel"])
@pytest.mark.parametrize("extent", [8, 9])
def test_a_store_outside(kind, extent):
    text = f"""\
    def main(A: float32[9], C: float32[8]):
        for i in {kind}({extent}):
            C[i] = A[i]
    """
    expected = None if extent == 8 else "C[i] is outside C[8]"
    assert outcomes(text, ones(9), ones(8)) == [expected] * 2


@pytest.mark.parametrize("first", [0, 3, -1])
def test_an_index_that_is_read(first):
    text = """\
    def main(A: float32[3], B: int32[2], C: float32[2]):
        for i in range(2):
            C[i] = A[index(B[i])]
    """
    index = np.array([first, 1], "int32")
    expected = None if first == 0 else "A[index(B[i])] is outside A[3]"
    assert outcomes(text, ones(3), index, ones(2)) == [expected] * 2


@pytest.mark.parametrize("limit", [4, 5])
def test_what_is_not_chosen_is_not_checked(limit):
    text = f"""\
    def main(A: float32[4], C: float32[8]):
        for i in range(8):
            C[i] = if_then_else(i < {limit} and A[i] > 0.5, A[i], 0.0)
    """
    expected = None if limit == 4 else "A[i] is outside A[4]"
    assert outcomes(text, ones(4), ones(8)) == [expected] * 2


@pytest.mark.parametrize("limit", [4, 5])
def test_lanes_that_are_not_chosen_are_not_checked(limit):
    text = f"""\
    def main(A: float32[4], C: float32[8]):
        C[0 : +8] = if_then_else((0 : +8) < broadcast({limit}, 8), A[0 : +8], broadcast(0.0, 8))
    """
    expected = None if limit == 4 else "A[0 : +8] is outside A[4]"
    assert outcomes(text, ones(4), ones(8)) == [expected] * 2


def test_lanes_of_data_are_taken_apart_too():
    text = """\
    def main(A: float32[4], C: float32[8]):
        C[0 : +8] = A[indexx8((int32(0) : +8) // broadcast(int32({}), 8))]
    """
    assert outcomes(text.format(2), ones(4), ones(8)) == [None] * 2
    (said, again) = outcomes(text.format(1), ones(4), ones(8))
    assert said == again is not None


def test_a_vector_is_checked_at_both_ends():
    text = "def main(A: float32[16], C: float32[8]):\n    C[0 : +8] = A[16 : +8:-2]\n"
    assert outcomes(text, ones(16), ones(8)) == ["A[16 : +8:-2] is outside A[16]"] * 2


def test_the_condition_of_a_statement():
    text = """\
    def main(A: float32[4], C: float32[8]):
        for i in range(8):
            if A[i] > 0.5:
                C[i] = 1.0
    """
    assert outcomes(text, ones(4), ones(8)) == ["A[i] is outside A[4]"] * 2


def test_memory_of_unknown_size_is_freed_before_the_program_stops():
    text = """\
    def main(A: float32[n], C: float32[8]):
        allocate B: float32[n]
        for i in parallel(9):
            allocate D: float32[n]
            D[0] = A[0]
            B[i] = D[0]
        C[0] = B[0]
    """
    func = instrument_bounds(read(textwrap.dedent(text)))
    lines = emit(func, resolve("cpu")).text.splitlines()
    frees = [n for n, line in enumerate(lines) if "call void @dlc_workspace_free" in line]
    assert len(frees) > 4


def test_the_outputs_of_a_call_that_stops_are_whatever_they_are_and_the_next_call_works():
    text = """\
    def main(B: int32[1], C: float32[8]):
        for i in parallel(8):
            C[i] = 1.0
            C[i + index(B[0])] = 2.0
    """
    _, kernel = loaded(text)
    right, wrong, c = np.array([0], "int32"), np.array([1], "int32"), ones(8)
    for _ in range(20):
        with pytest.raises(ProgramError, match="is outside"):
            kernel(wrong, c)
        kernel(right, c)
    assert (c == 2).all()


def test_build_with_the_instrument():
    a = te.placeholder((30,), name="A")
    c = te.compute((30,), lambda i: a[i] + 1.0, name="C")
    s = create_schedule(c.op)
    outer, inner = s[c].split(s[c].op.axis[0], factor=8)
    s[c].parallel(outer)
    s[c].vectorize(inner)
    kernel = build(s, [a, c], instrument="bounds")
    assert "assert " in str(kernel.func)
    data, result = np.arange(30, dtype="float32"), np.zeros(30, "float32")
    kernel(data, result)
    assert (result == data + 1).all()
    assert not build(s, [a, c]).messages
    assert RemoteKernel.of(kernel).run({"A": data, "C": result}, timeout_s=30).ok
    with pytest.raises(ScheduleError) as caught:
        lower(s, [a, c], instrument="heat")
    assert str(caught.value) == (
        "lower main: no such instrument\n  got       'heat'\n  expected  bounds"
    )


def test_no_assertion_fails_in_a_right_program():
    def run(func):
        from dlcompiler.passes import unroll_loops, vectorize_loops

        return instrument_bounds(unroll_loops(vectorize_loops(func)))

    assert keeps_results(run, range(400, 420), is_idempotent=False)


def test_each_access_is_checked_once():
    text = after(instrument_bounds, """\
def main(A: float32[4], C: float32[4]):
    for i in range(4):
        C[i] += A[i]*A[i]
""")  # fmt: skip
    assert text.count("assert") == 2
