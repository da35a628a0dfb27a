"""What no program may do, and what the interpreter says about it."""

import numpy as np
import pytest

from dlcompiler.errors import CallError, ProgramError
from dlcompiler.ir import (
    Allocate,
    Buffer,
    If,
    Load,
    PrimFunc,
    Select,
    Seq,
    Store,
    Var,
    const,
    index_const,
)
from dlcompiler.simulate import interpret

A, B = Buffer("A", (4,), "float32"), Buffer("B", (4,), "float32")
M, S = Buffer("M", (4, 8), "float32"), Buffer("S", (), "float32")
i, j, k = Var("i"), Var("j"), Var("k")
zero = const(0, "float32")
ZERO = index_const(0)


def _interpret(body, **options):
    arrays = [np.ones(b.shape, b.dtype) for b in (A, M, B, S)]
    return interpret(PrimFunc("f", (A, M, B, S), (B, S), body), arrays, **options)


def _refusal(body, **options):
    with pytest.raises(ProgramError) as error:
        _interpret(body, **options)
    return error.value


# -- bounds ---------------------------------------------------------------------------------------


def test_a_load_past_the_end(loop):
    error = _refusal(loop(i, 4, Store(B, (i,), Load(A, (i + 1,)) + 1)))
    assert str(error) == (
        "interpret f: A[4] is out of bounds\n"
        "  got       4 in dimension 0\n"
        "  expected  0 to 3\n"
        "  loops     i=3\n"
        "  excerpt   B[i] = A[i + 1] + 1.0"
    )
    assert (error.kind, error.buffer, error.index) == ("out_of_bounds", "A", (4,))
    assert error.loops == (("i", 3),)


def test_below_zero_does_not_count_from_the_end(loop):
    error = _refusal(loop(i, 4, Store(B, (i - 1,), zero)))
    assert (error.problem, error.loops) == ("B[-1] is out of bounds", (("i", 0),))


def test_each_dimension_has_its_own_bounds(loop):
    """M[0, 8] is inside the memory of M, but it is not an element of it."""
    error = _refusal(loop(i, 4, loop(j, 9, Store(B, (i,), Load(M, (i, j))))))
    assert (error.problem, error.got) == ("M[0, 8] is out of bounds", "8 in dimension 1")
    assert error.loops == (("i", 0), ("j", 8))


def test_three_dimensions(loop):
    T = Buffer("T", (2, 2, 2), "float32", scope="local")
    error = _refusal(Allocate(T, loop(i, 3, Store(T, (ZERO, i, ZERO), zero))))
    assert (error.problem, error.got) == ("T[0, 2, 0] is out of bounds", "2 in dimension 1")


def test_an_empty_dimension_has_no_index():
    T = Buffer("T", (0,), "float32", scope="local")
    error = _refusal(Allocate(T, Store(T, (ZERO,), zero)))
    assert error.expected == "no index: the dimension is empty"


def test_a_condition_is_a_place_too(loop):
    error = _refusal(loop(i, 5, If(Load(A, (i,)) > 2, Store(B, (i,), zero))))
    assert error.excerpt == "if A[i] > 2.0:"


def test_an_eager_choice_does_not_guard(loop):
    error = _refusal(loop(i, 4, Store(B, (i,), Select(i >= 1, Load(A, (i - 1,)), zero))))
    assert error.problem == "A[-1] is out of bounds"


# -- uninitialised elements -----------------------------------------------------------------------


def test_an_allocated_buffer_starts_unwritten(loop):
    T = Buffer("T", (4,), "float32", scope="local")
    body = Allocate(T, loop(i, 4, Store(B, (i,), Load(T, (i,)))))
    error = _refusal(body)
    assert str(error) == (
        "interpret f: T[0] is read before it is written\n  loops     i=0\n  excerpt   B[i] = T[i]"
    )
    assert (error.kind, error.buffer, error.index) == ("uninitialised", "T", (0,))


def test_an_output_starts_unwritten(loop):
    error = _refusal(loop(i, 4, Store(B, (i,), Load(B, (i,)) + 1)))
    assert error.problem == "B[0] is read before it is written"


def test_an_allocation_in_a_loop_starts_anew(loop):
    T = Buffer("T", (2,), "float32", scope="local")
    body = Seq((If(i < 1, Store(T, (ZERO,), zero)), Store(B, (i,), Load(T, (ZERO,)))))
    error = _refusal(loop(i, 4, Allocate(T, body)))
    assert error.loops == (("i", 1),)


def test_a_scalar(loop):
    error = _refusal(Store(S, (), Load(S, ()) + 1))
    assert error.problem == "S[()] is read before it is written"


# -- races ----------------------------------------------------------------------------------------


def test_two_iterations_write_one_element(loop):
    error = _refusal(loop(i, 4, Store(B, (i // 2,), zero), "parallel"))
    assert str(error) == (
        "interpret f: race on B[0] between iterations i=0 and i=1\n"
        "  got       for i in parallel(4)\n"
        "  loops     i=1\n"
        "  because   both iterations write the element\n"
        "  excerpt   B[i // 2] = 0.0"
    )
    assert (error.kind, error.buffer, error.index) == ("race", "B", (0,))


@pytest.mark.parametrize("kind", ["parallel", "vectorized"])
def test_a_reduction_races(kind, loop):
    update = Store(S, (), Load(S, ()) + Load(A, (i,)))
    error = _refusal(Seq((Store(S, (), zero), loop(i, 4, update, kind))))
    assert error.problem == "race on S[()] between iterations i=0 and i=1"
    assert error.got == f"for i in {kind}(4)"
    _interpret(Seq((Store(S, (), zero), loop(i, 4, update))))


def _fill(loop):
    return loop(j, 4, Store(B, (j,), zero))


def test_one_iteration_reads_what_an_earlier_one_writes(loop):
    chain = loop(i, 3, Store(B, (i + 1,), Load(B, (i,))), "parallel")
    error = _refusal(Seq((_fill(loop), chain)))
    assert error.problem == "race on B[1] between iterations i=0 and i=1"
    assert error.because == "one iteration writes the element, another reads it"


def test_one_iteration_writes_what_an_earlier_one_reads(loop):
    chain = loop(i, 3, Store(B, (i,), Load(B, (i + 1,))), "vectorized")
    error = _refusal(Seq((_fill(loop), chain)))
    assert error.problem == "race on B[1] between iterations i=0 and i=1"
    assert error.because == "one iteration reads the element, another writes it"


def test_a_reader_is_not_forgotten_for_a_later_one(loop):
    """Iterations 0 and 1 read S, and 2 writes it: it races with both."""
    body = If(i < 2, Store(B, (i,), Load(S, ())), Store(S, (), zero))
    error = _refusal(Seq((Store(S, (), zero), loop(i, 3, body, "parallel"))))
    assert error.problem == "race on S[()] between iterations i=0 and i=2"


def test_the_race_names_the_loop_that_it_is_in(loop):
    inner = loop(j, 4, Store(B, (i,), zero), "vectorized")
    error = _refusal(loop(i, 4, inner, "parallel"))
    assert (error.problem, error.got) == (
        "race on B[0] between iterations j=0 and j=1",
        "for j in vectorized(4)",
    )
    inner = loop(j, 4, Store(B, (j,), zero), "vectorized")
    error = _refusal(loop(i, 4, inner, "parallel"))
    assert (error.problem, error.got) == (
        "race on B[0] between iterations i=0 and i=1",
        "for i in parallel(4)",
    )


def test_a_read_deep_in_one_iteration_and_a_write_in_another(loop):
    read = loop(j, 2, loop(k, 1, Store(B, (j,), Load(S, ())), "parallel"), "vectorized")
    body = If(i < 1, read, Store(S, (), zero))
    error = _refusal(Seq((Store(S, (), zero), loop(i, 2, body, "parallel"))))
    assert error.problem == "race on S[()] between iterations i=0 and i=1"


def test_what_is_ordered_does_not_race(loop):
    """One loop after the other, an iteration with itself, and a loop nested in one iteration."""
    write = loop(i, 4, Store(B, (i,), zero), "parallel")
    read = loop(i, 4, Store(B, (i,), Load(B, (i,)) + 1), "vectorized")
    nested = loop(k, 3, Seq((write, read, Store(B, (ZERO,), zero))))
    _interpret(Seq((nested, write, Store(S, (), Load(B, (ZERO,))))))


def test_iterations_have_their_own_allocations(loop):
    T = Buffer("T", (1,), "float32", scope="local")
    body = Seq((Store(T, (ZERO,), Load(A, (i,))), Store(B, (i,), Load(T, (ZERO,)))))
    _interpret(loop(i, 4, Allocate(T, body), "parallel"))
    error = _refusal(Allocate(T, loop(i, 4, body, "parallel")))
    assert error.buffer == "T"


def test_reading_together_is_no_race(loop):
    body = Seq((Store(S, (), zero), loop(i, 4, Store(B, (i,), Load(S, ())), "parallel")))
    _interpret(body)


# -- steps ----------------------------------------------------------------------------------------


def test_the_step_budget(loop):
    body = loop(i, 4, Store(B, (i,), zero))
    assert _interpret(body, max_steps=8).steps == 8
    error = _refusal(body, max_steps=7)
    assert str(error) == (
        "interpret f: the program takes more than 7 steps\n"
        "  hint      interpret it on a smaller shape, or raise max_steps\n"
        "  excerpt   for i in range(4):"
    )
    assert error.kind == "step_budget"


def test_a_huge_loop_is_refused_before_it_runs(loop):
    error = _refusal(loop(i, 4, loop(j, 10**12, Store(B, (i,), zero))))
    assert (error.kind, error.loops) == ("step_budget", (("i", 0),))


# -- arguments ------------------------------------------------------------------------------------

ONES = np.ones(4, "float32")
READ_ONLY = np.ones(4, "float32")
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        (
            [ONES],
            "interpret f: wrong number of arguments\n  got       1\n  expected  2: A, B",
        ),
        (
            [[1.0] * 4, ONES],
            "interpret f: A is not a NumPy array\n"
            "  got       list\n"
            "  hint      convert it with numpy.asarray",
        ),
        (
            [np.ones((4, 1), "float32"), ONES],
            "interpret f: A has the wrong shape\n  got       (4, 1)\n  expected  (4,)",
        ),
        (
            [np.ones(4), ONES],
            "interpret f: A has the wrong dtype\n"
            "  got       <f8\n"
            "  expected  float32\n"
            "  hint      convert it with A.astype('float32')",
        ),
        (
            [np.ones(4, ">f4"), ONES],
            "interpret f: A has the wrong dtype\n"
            "  got       >f4\n"
            "  expected  float32\n"
            "  hint      convert it with A.astype('float32')",
        ),
        (
            [ONES, READ_ONLY],
            "interpret f: B is written, but its array is read-only",
        ),
        (
            [ONES, ONES[::-1]],
            "interpret f: B is written, but shares memory with A\n"
            "  hint      pass a copy: A.copy()",
        ),
    ],
)  # fmt: skip
def test_arrays_that_do_not_fit(arrays, text, loop):
    func = PrimFunc("f", (A, B), (B,), loop(i, 4, Store(B, (i,), Load(A, (i,)))))
    with pytest.raises(CallError) as error:
        interpret(func, arrays)
    assert str(error.value) == text


def test_an_input_may_be_given_twice(loop):
    X = Buffer("X", (4,), "float32")
    body = loop(i, 4, Store(B, (i,), Load(A, (i,)) + Load(X, (i,))))
    out = np.zeros(4, "float32")
    interpret(PrimFunc("f", (A, X, B), (B,), body), [ONES, ONES, out])
    assert out.tolist() == [2.0] * 4


def test_sizes_that_the_program_is_not_for():
    n = Var("n", is_symbol=True)
    X = Buffer("X", (n,), "float32")
    program = PrimFunc(
        "f", (X,), (X,), Store(X, (ZERO,), zero), symbols=(n,), checks=((n >= 1, "X is empty"),)
    )
    assert interpret(program, [np.ones(1, "float32")]).stores == 1
    with pytest.raises(CallError) as error:
        interpret(program, [np.ones(0, "float32")])
    assert str(error.value) == ("interpret f: X is empty\n  got       n = 0\n  expected  n >= 1")
