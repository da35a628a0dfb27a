"""`vectorize_loops`: vectors where they are right, loops where not."""

from dlcompiler.ir import (
    For,
    If,
    IfThenElse,
    Load,
    StepRef,
    Var,
    compare,
    const,
    index_const,
    logical,
)
from dlcompiler.passes import vectorize_loops
from tests.passes.conftest import buffer, store

I_REF, J_REF = StepRef("", "C", "i"), StepRef("", "C", "j")
I, J = Var("i"), Var("j")  # noqa: E741


def nest(body, extent=8, rows=4):
    inner = For(J, index_const(extent), "vectorized", body, (J_REF,))
    return For(I, index_const(rows), "serial", inner, (I_REF,))


def test_the_example_of_its_docstring(text):
    a, s, c = buffer("A", 4, 8), buffer("s", 1), buffer("C", 4, 8)
    body = store(c, (I, J), Load(a, (I, J)) * Load(s, (index_const(0),)))
    assert text(vectorize_loops, nest(body), (a, s, c), frozenset({I_REF, J_REF})) == (
        "    for i in range(4):\n        C[i, 0 : +8] = A[i, 0 : +8]*broadcast(s[0], 8)\n"
    )


def test_a_guard_runs_the_vector_when_it_holds_for_all_lanes(text):
    a, c = buffer("A", 30), buffer("C", 30)
    at = I * 8 + J
    body = If(compare("lt", at, 30), store(c, (at,), Load(a, (at,))))
    assert text(vectorize_loops, nest(body), (a, c), frozenset({I_REF, J_REF})) == (
        "    for i in range(4):\n"
        "        if i*8 + 7 < 30:\n"
        "            C[i*8 + 0 : +8] = A[i*8 + 0 : +8]\n"
        "        else:\n"
        "            for j in range(8):\n"
        "                if i*8 + j < 30:\n"
        "                    C[i*8 + j] = A[i*8 + j]\n"
    )


def test_a_falling_guard_looks_at_the_first_lane(text):
    a, c = buffer("A", 32), buffer("C", 32)
    at = I * 8 + J
    inside = logical("and", compare("ge", at, 2), compare("lt", I, 3))
    body = If(inside, store(c, (at,), Load(a, (at,))))
    after = text(vectorize_loops, nest(body), (a, c), frozenset({I_REF, J_REF}))
    assert "if i*8 + 0 >= 2 and i < 3:" in after


def test_a_long_loop_is_cut_into_equal_pieces(text):
    a, c = buffer("A", 4, 96), buffer("C", 4, 96)
    body = store(c, (I, J), Load(a, (I, J)))
    after = text(vectorize_loops, nest(body, 96), (a, c), frozenset({I_REF, J_REF}))
    assert "for j.chunk in range(2):" in after
    assert ": +48]" in after


def test_a_prime_extent_above_the_limit_stays_a_loop(text):
    a, c = buffer("A", 4, 67), buffer("C", 4, 67)
    body = store(c, (I, J), Load(a, (I, J)))
    after = text(vectorize_loops, nest(body, 67), (a, c), frozenset({I_REF, J_REF}))
    assert "for j in range(67):" in after


def test_a_choice_that_guards_a_load_stays_a_loop(text):
    a, c = buffer("A", 7), buffer("C", 4, 8)
    value = IfThenElse(compare("ge", J, 1), Load(a, (J - 1,)), const(0, "float32"))
    after = text(vectorize_loops, nest(store(c, (I, J), value)), (a, c), frozenset({I_REF, J_REF}))
    assert "for j in range(8):" in after


def test_a_choice_without_loads_becomes_a_selection(text):
    a, c = buffer("A", 4), buffer("C", 4, 8)
    value = IfThenElse(compare("ge", J, 1), const(1, "float32"), const(0, "float32"))
    after = text(vectorize_loops, nest(store(c, (I, J), value)), (a, c), frozenset({I_REF, J_REF}))
    assert "select(" in after
