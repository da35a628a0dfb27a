"""Traversal: nothing changed means the same object, and a shared node is visited once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlcompiler.ir import (
    Allocate,
    Buffer,
    Const,
    For,
    If,
    Load,
    Seq,
    Store,
    Var,
    binary,
    const,
    depth,
    free_vars,
    index_const,
    rewrite,
    structural_equal,
    substitute,
    walk,
)

A = Buffer("A", (8,), "float32")
i, j = Var("i"), Var("j")


def _program():
    store = Store(A, (i,), Load(A, (i,)) + 1)
    branch = If(i < 4, store, Seq((store, store)))
    return For(i, index_const(8), "serial", Allocate(Buffer("T", (2,), "int8"), branch))


def _tower(height):
    """An expression of `height` nodes with 2**height paths."""
    node = Load(A, (i,))
    for _ in range(height):
        node = binary("add", node, node)
    return node


def test_rewriting_nothing_gives_the_same_object():
    program = _program()
    assert rewrite(program, lambda node: node) is program
    assert substitute(program, {j: index_const(3)}) is program
    assert substitute(program, {}) is program


def test_only_the_way_to_a_change_is_rebuilt():
    a, b = Load(A, (i,)), Load(A, (j,))
    both = a + b
    changed = substitute(both, {j: index_const(0)})
    assert changed.a is a
    assert changed.b is not b


def test_a_shared_node_is_rewritten_once():
    calls = []

    def count(node):
        calls.append(node)
        return node

    rewrite(_tower(200), count)
    assert len(calls) == 202


def test_a_shared_node_stays_shared():
    result = substitute(_tower(3), {i: j})
    assert result.a is result.b
    assert free_vars(result) == {j}


def test_walk_visits_parents_first_and_each_node_once():
    tower = _tower(500)
    nodes = list(walk(tower))
    assert nodes[0] is tower
    assert len(nodes) == 502


def test_depth_counts_the_longest_way_down():
    assert depth(i) == 1
    assert depth(_tower(300)) == 302


def test_children_see_the_rule_first():
    replaced = rewrite(
        Load(A, (i,)) * 2,
        lambda n: const(n.value + 1, n.dtype) if isinstance(n, Const) else n,
    )
    assert str(replaced) == "A[i]*3.0"


def test_an_empty_tuple_counts_as_a_change():
    both = Seq((Store(A, (i,), const(0, "float32")),))
    emptied = rewrite(both, lambda n: Seq(()) if isinstance(n, Seq) else n)
    assert emptied.statements == ()


@pytest.mark.parametrize("kind", ["serial", "parallel"])
def test_fields_that_hold_no_nodes_are_kept(kind):
    loop = For(i, index_const(8), kind, Store(A, (i,), const(0, "float32")), ())
    changed = substitute(loop, {i: j})
    assert (changed.kind, changed.var) == (kind, i)


@given(st.lists(st.sampled_from(["add", "sub", "mul", "min"]), min_size=1, max_size=12))
def test_substituting_there_and_back_changes_nothing(ops):
    expr = Load(A, (i,))
    for op in ops:
        expr = binary(op, expr, Load(A, (i + 1,)))
    there = substitute(expr, {i: j})
    assert structural_equal(expr, there)
    assert not structural_equal(expr, there, rename=False)
    assert structural_equal(expr, substitute(there, {j: i}), rename=False)
