"""create_schedule, stages by tensor, listeners, and the ids of states."""

import subprocess
import sys

import pytest

from dlcompiler import te
from dlcompiler.schedule import create_schedule


def test_takes_operations_tensors_and_lists_of_them(chain):
    for outputs in (chain.D.op, chain.D, [chain.D.op], (chain.D, chain.Q.op)):
        assert repr(create_schedule(outputs)) == "Schedule(A, P, Q, D; 0 steps)"


def test_producers_stand_before_consumers(chain):
    assert [stage.name for stage in chain.s.stages] == ["A", "P", "Q", "D"]
    assert chain.s.outputs == (chain.D,)


def test_tensors_of_one_name_get_different_stages():
    first = te.placeholder((4,), name="A")
    second = te.placeholder((4,), name="A")
    C = te.compute((4,), lambda i: first[i] + second[i], name="A")
    s = create_schedule(C)
    assert [s[tensor].name for tensor in (first, second, C)] == ["A", "A_1", "A_2"]


def test_a_schedule_may_be_only_an_input():
    A = te.placeholder((4,), name="A")
    assert [stage.name for stage in create_schedule(A).stages] == ["A"]


@pytest.mark.parametrize(("value", "got"), [(5, "5"), (None, "None"), ([3], "3")])
def test_refuses_what_is_no_operation(refusal, value, got):
    assert refusal(create_schedule, value) == (
        f"create_schedule: not an operation\n  got       {got}\n  expected  C.op of a tensor C"
    )


def test_refuses_an_element(refusal, chain):
    assert refusal(create_schedule, chain.A[0]) == (
        "create_schedule: not an operation\n"
        "  got       TensorLoad(A[0])\n"
        "  expected  C.op of a tensor C"
    )


def test_refuses_no_operation(refusal):
    assert refusal(create_schedule, []) == (
        "create_schedule: no operation given\n  expected  C.op or [C.op, …]"
    )


def test_refuses_more_stages_than_passes_can_walk(refusal):
    T = te.placeholder((4,), name="A")
    for _ in range(200):
        T = increased(T)
    assert refusal(create_schedule, T.op) == (
        "create_schedule: the expression has too many tensors\n"
        "  got       201\n"
        "  expected  at most 200\n"
        "  hint      schedule parts of it on their own"
    )


def increased(T):
    return te.compute(T.shape, lambda i: T[i] + 1.0)


@pytest.mark.parametrize("key", [3, "C", None, (1, 2)])
def test_refuses_a_key_that_is_no_tensor(matmul, refusal, key):
    assert refusal(matmul.s.__getitem__, key) == (
        f"schedule[{key!r}]: no stage of this schedule\n"
        f"  got       {key!r}\n"
        "  expected  a tensor or operation of this schedule: A, B, C"
    )


def test_refuses_a_tensor_of_another_expression(matmul, chain, refusal):
    assert refusal(matmul.s.__getitem__, chain.D) == (
        "schedule['D']: no stage of this schedule\n"
        "  got       Tensor(D: float32[16])\n"
        "  expected  a tensor or operation of this schedule: A, B, C"
    )


def test_an_operation_that_steps_have_rewritten_names_its_stage(matmul):
    s, C = matmul.s, matmul.C
    parts = s.rfactor(C, s[C].split(matmul.k, 2)[0])
    rewritten = s[C].op
    s.cache_read(parts, "local", [rewritten.output(0)])
    assert s[C].op is not rewritten
    assert s[rewritten].name == s[rewritten.output(0)].name == "C"


def test_listeners_hear_every_move_of_the_cursor(matmul):
    heard = []
    matmul.s.listeners.append(lambda s: heard.append(len(s.trace)))
    matmul.s[matmul.C].split(matmul.i, 2)
    matmul.s.undo()
    matmul.s.redo()
    matmul.s.jump(matmul.s.history.history.root.id)
    assert heard == [1, 0, 1, 0]


def test_a_refusal_moves_nothing(matmul, refusal):
    heard = []
    matmul.s.listeners.append(heard.append)
    before = repr(matmul.s.history)
    refusal(matmul.s[matmul.C].vectorize, matmul.k)
    assert (heard, len(matmul.s.trace), repr(matmul.s.history)) == ([], 0, before)


def test_apply_refuses_names_that_do_not_exist(matmul, refusal):
    assert refusal(matmul.s.apply, "fuze", "C", {}).startswith("apply 'fuze': no such primitive")
    assert refusal(matmul.s.apply, "split", "Z", {}) == (
        "split Z: no stage has this name\n  expected  A, B, C"
    )
    assert refusal(matmul.s.apply, "compute_at", "A", {"parent": "Z", "axis": matmul.i}) == (
        "compute_at A at Z.i: no such stage\n  got       'Z'\n  hint      there are A, B, C"
    )
    assert refusal(matmul.s.apply, "fuse", "C", {"axes": [matmul.i, matmul.j]}).startswith(
        "fuse C: axes must be a tuple of axes\n  got       [Axis(i, extent=4, data)"
    )


# -- ids ------------------------------------------------------------------------------------------


def state_id(body, shape=(4, 4), name="C"):
    A = te.placeholder((4, 4), name="A")
    B = te.placeholder((4, 4), name="B")
    C = te.compute(shape, lambda i, j: body(A, B, i, j), name=name)
    return create_schedule(C).state.id


def test_ids_tell_expressions_apart():
    ids = {
        state_id(lambda A, B, i, j: A[i, j] - B[i, j]),
        state_id(lambda A, B, i, j: B[i, j] - A[i, j]),
        state_id(lambda A, B, i, j: A[j, i] - B[i, j]),
        state_id(lambda A, B, i, j: A[i, j] - B[i, j] + 1.0),
        state_id(lambda A, B, i, j: A[i, j] - B[i, j] + 2.0),
        state_id(lambda A, B, i, j: A[i, j] - B[i, j], shape=(4, 3)),
        state_id(lambda A, B, i, j: A[i, j] - B[i, j], name="D"),
        state_id(lambda A, B, i, j: (A[i, j] - B[i, j]).astype("float64")),
    }
    assert len(ids) == 8


def test_ids_are_the_same_for_the_same_expression_and_in_every_process(matmul):
    code = (
        "from dlcompiler import te\n"
        "from dlcompiler.schedule import create_schedule\n"
        "A = te.placeholder((4, 8), name='A')\n"
        "B = te.placeholder((8, 6), name='B')\n"
        "k = te.reduce_axis((0, 8), name='k')\n"
        "C = te.compute((4, 6), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name='C')\n"
        "s = create_schedule(C.op)\n"
        "s[C].split(k, 4)\n"
        "print(s.state.id)\n"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    matmul.s[matmul.C].split(matmul.k, 4)
    assert other.stdout.strip() == matmul.s.state.id


def test_an_expression_that_shares_its_parts_costs_no_more_than_its_nodes():
    A = te.placeholder((4,), name="A")
    C = te.compute((4,), lambda i: squared(A[i], 100), name="C")
    create_schedule(C)


def squared(value, times):
    for _ in range(times):
        value = value * value
    return value
