"""Nodes of an expression with their conditions; the first and the last element of a region."""

from dlcompiler import te
from dlcompiler.ir import TensorLoad, Var, decl_buffer, index_const
from dlcompiler.ir.guards import MAX_WAYS, corners, guarded

A = te.placeholder((9,), "int32", name="A")
B = te.placeholder((9,), "int32", name="B")


def loads(expr):
    return [str(load) for load, _ in guarded(expr, TensorLoad)]


def test_operands_come_before_what_uses_them_where_they_are_shared():
    shared = A[0]
    assert loads(B[shared] + shared) == ["A[0]", "B[index(A[0])]"]
    assert loads(shared + B[shared]) == ["A[0]", "B[index(A[0])]"]
    deeper = B[B[shared]]
    assert loads(deeper + B[shared] + shared)[0] == "A[0]"


def test_conditions_come_before_what_they_guard():
    chosen = te.if_then_else(A[0] > 0, B[1], B[2])
    assert loads(chosen) == ["A[0]", "B[1]", "B[2]"]
    assert loads(chosen + A[0]) == ["A[0]", "B[1]", "B[2]", "A[0]"]


def test_many_conditions_that_lead_to_one_node():
    shared = A[0]
    total = te.const(0, "int32")
    for n in range(MAX_WAYS + 2):
        total = total + te.if_then_else(B[n % 9] > n, shared, 0)
    found = [guards for load, guards in guarded(total, TensorLoad) if load is shared]
    assert len(found) == MAX_WAYS + 1
    assert found.count(None) == 1


def test_a_region_of_known_extents():
    n = Var("n", is_symbol=True)
    region = decl_buffer((4, 8), name="A").region((1, n), (2, 3), "r")
    is_there, (first, last) = corners(region)
    assert is_there == ()
    assert [str(x) for x in first] == ["1", "n"]
    assert [str(x) for x in last] == ["2", "n + 3 - 1"]


def test_a_region_that_may_be_empty():
    n = Var("n", is_symbol=True)
    region = decl_buffer((4, 8), name="A").region((0, 0), (n, index_const(0)), "w")
    is_there, _ = corners(region)
    assert [str(condition) for condition in is_there] == ["n > 0", "0 > 0"]
