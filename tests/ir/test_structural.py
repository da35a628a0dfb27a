"""Equality by value: names and identity of variables do not count, everything else does."""

import time

from dlcompiler.ir import (
    Axis,
    Buffer,
    Const,
    For,
    Load,
    Reduce,
    Reducer,
    Store,
    Var,
    binary,
    const,
    index_const,
    structural_equal,
    structural_key,
)

SUM, MAX = Reducer("sum", "add"), Reducer("max", "max")


def _copy(buffer, name="i", extent=8, offset=0):
    var = Var(name)
    return For(
        var, index_const(extent), "serial", Store(buffer, (var,), Load(buffer, (var + offset,)))
    )


def _buffer(dtype="float32", scope="global"):
    return Buffer("A", (8,), dtype, scope)


def test_names_and_identity_do_not_count():
    assert structural_equal(_copy(_buffer(), "i"), _copy(_buffer(), "renamed"))


def test_everything_else_counts():
    base = _copy(_buffer())
    assert not structural_equal(base, _copy(_buffer(), extent=9))
    assert not structural_equal(base, _copy(_buffer(), offset=1))
    assert not structural_equal(base, _copy(_buffer("float64")))
    assert not structural_equal(base, _copy(_buffer(scope="local")))


def test_without_renaming_identity_counts():
    buffer = _buffer()
    assert not structural_equal(_copy(buffer), _copy(buffer), rename=False)
    loop = _copy(buffer)
    assert structural_equal(loop, loop, rename=False)


def test_two_variables_are_told_apart():
    i, j = Var("i"), Var("j")
    assert not structural_equal(binary("sub", i, j), binary("sub", i, i))
    assert structural_equal(binary("sub", i, j), binary("sub", j, i))


def test_a_variable_of_another_dtype_differs():
    assert not structural_equal(Var("x", "int32"), Var("x", "int64"))


def test_literals_differ_by_type_dtype_and_sign_of_zero():
    literals = [
        Const(1, "int32"), Const(True, "bool"), const(1, "float32"), const(1, "float64"),
        const(0, "float32"), const(-0.0, "float32"), const(float("nan"), "float32"),
    ]  # fmt: skip
    keys = {structural_key(literal) for literal in literals}
    assert len(keys) == len(literals)
    assert structural_equal(const(float("nan"), "float32"), const(float("nan"), "float32"))


def test_reductions_differ_by_reducer_extent_and_start():
    def total(reducer=SUM, extent=8, start=0):
        k = Axis("k", extent, "reduce", start=start)
        return Reduce(reducer, (Load(_buffer(), (k.var,)),), (k,))

    assert structural_equal(total(), total())
    assert not structural_equal(total(), total(reducer=MAX))
    assert not structural_equal(total(), total(extent=9))
    assert not structural_equal(total(), total(start=1))


def _tower(height):
    node = Load(Buffer("A", (8,), "float32"), (Var("i"),))
    for _ in range(height):
        node = binary("add", node, node)
    return node


def test_shared_graphs_compare_in_linear_time():
    start = time.perf_counter()
    assert structural_equal(_tower(120), _tower(120))
    assert not structural_equal(_tower(120), _tower(119))
    assert hash(structural_key(_tower(120), rename=True)) == hash(
        structural_key(_tower(120), rename=True)
    )
    assert time.perf_counter() - start < 60  # not 2**120 nodes


def test_sharing_itself_does_not_count():
    buffer, i = _buffer(), Var("i")
    shared = Load(buffer, (i,))
    assert structural_equal(shared + shared, Load(buffer, (i,)) + Load(buffer, (i,)))
