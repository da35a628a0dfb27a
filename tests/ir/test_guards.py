"""Nodes of an expression, with the conditions under which they are evaluated."""

from dlcompiler import te
from dlcompiler.ir import TensorLoad
from dlcompiler.ir.guards import MAX_WAYS, guarded

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
