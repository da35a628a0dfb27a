"""`simplify`: arithmetic, conditions, and loops that run once or never."""

from dlcompiler.ir import For, If, Load, PrimFunc, StepRef, Var, compare, index_const, seq
from dlcompiler.passes import simplify
from tests.passes.conftest import STAGE, buffer, store

I_REF, J_REF = StepRef("", "C", "i"), StepRef("", "C", "j")


def loop(name, extent, body, ref=None, kind="serial"):
    return For(Var(name), index_const(extent), kind, body, (ref,) if ref else ())


def nest(make, i_extent=4, j_extent=1):
    i, j = Var("i"), Var("j")
    body = For(j, index_const(j_extent), "serial", make(i, j), (J_REF,))
    return For(i, index_const(i_extent), "serial", body, (I_REF,))


def test_the_example_of_its_docstring(text):
    a, c = buffer("A", 64), buffer("C", 8, 4)

    def make(i, j):
        inside = compare("lt", i * 8 + j, 64)
        value = Load(a, (i * 8 + j - i * 8,))
        return If(inside, store(c, ((i * 8 + j) // 8, index_const(0) + j), value))

    after = text(simplify, nest(make), (a, c), frozenset({I_REF, J_REF}))
    assert after == "    for i in range(4):\n        C[i, 0] = A[0]\n"


def test_a_loop_of_nothing_goes(text):
    a, c = buffer("A", 4), buffer("C", 4)
    body = seq((
        nest(lambda i, j: store(c, (i,), Load(a, (i,))), 0, 1),
        nest(lambda i, j: store(c, (i,), Load(a, (j,))), 4, 1),
    ))  # fmt: skip
    after = text(simplify, body, (a, c))
    assert after == "    for i in range(4):\n        C[i] = A[0]\n"


def test_a_condition_that_never_holds_takes_its_other_side(text):
    a, c = buffer("A", 4), buffer("C", 4)

    def make(i, j):
        first, second = store(c, (i,), Load(a, (i,))), store(c, (i,), Load(a, (j,)))
        return If(compare("ge", i, 4), first, second)

    after = text(simplify, nest(make), (a, c))
    assert after == "    for i in range(4):\n        C[i] = A[0]\n"


def test_what_is_simple_is_returned():
    a, c = buffer("A", 4), buffer("C", 4)
    i = Var("i")
    body = For(i, index_const(4), "serial", store(c, (i,), Load(a, (i,))), (I_REF,))
    func = PrimFunc("main", (a, c), (c,), body, {STAGE: frozenset({I_REF})})
    assert simplify(func) is func


def test_one_variable_of_two_loops_has_each_range_in_turn(text):
    a, c = buffer("A", 8), buffer("C", 8)
    i = Var("i")

    def make(extent):
        guarded = If(compare("lt", i, 4), store(c, (i,), Load(a, (i,))))
        return For(i, index_const(extent), "serial", guarded, (I_REF,))

    after = text(simplify, seq((make(4), make(8))), (a, c), frozenset({I_REF}))
    assert after == (
        "    for i in range(4):\n        C[i] = A[i]\n"
        "    for i in range(8):\n        if i < 4:\n            C[i] = A[i]\n"
    )
