"""`thread_conflicts`: which statements threads have to keep in order."""

import pytest

from dlcompiler.ir import For, Seq, walk
from dlcompiler.passes.thread_conflicts import Conflicts
from tests.passes.reading import read

PROGRAM = """\
def main(A: float32[64], C: float32[64]):
    allocate T: float32[2, 32] in shared
    for y in threadIdx.y(2):
        for x in threadIdx.x(32):
            for k in range(8):
                {first}
                {second}
"""


def statements(first, second):
    """Return the two statements, and the conflicts of their threads."""
    func = read(PROGRAM.format(first=first, second=second), ("A", "C"))
    loops = {node.var.name: node for node in walk(func.body) if isinstance(node, For)}
    body = loops["k"].body
    assert isinstance(body, Seq)
    axes = frozenset(loops[name].var for name in "xy")
    return body, Conflicts(frozenset(), axes)


def conflict(first, second):
    body, conflicts = statements(first, second)
    return conflicts.in_order(body.statements[:1], body.statements[1])


FILL = "T[(k + 1) % 2, x] = A[x]"


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("T[0, x] = A[x]", "C[x] = T[0, x]", True),
        ("C[x] = T[0, x]", "T[0, x] = A[x]", True),
        ("T[0, x] = A[x]", "C[x] = A[x]", False),
        (FILL, "C[x] = T[k % 2, x]", False),
        (FILL, "C[x] = T[(k + 1) % 2, x]", True),
        (FILL, "C[x] = T[(k + 2) % 2, x]", False),
        (FILL, "C[x] = T[x % 2, x]", True),
        ("T[0, x] = A[x]", "C[x] = T[1, x]", False),
        ("C[x] = 0.0", "C[x] = 1.0", True),
    ],
)
def test_in_one_iteration(first, second, expected):
    assert conflict(first, second) is expected


def test_halves_that_inner_loops_choose_are_not_known():
    first = "for j in range(2):\n                    T[j % 2, x] = A[x]"
    second = "for j in range(2):\n                    C[x] = T[(j + 1) % 2, x]"
    assert conflict(first, second)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (("x == 0", "C[k] = 0.0"), ("x == 0", "C[k] = 1.0"), False),
        (("x == 0", "C[k] = 0.0"), ("y == 0", "C[k] = 1.0"), True),
        (("x == 1", "C[k] = 0.0"), ("x == 1", "C[k] = 1.0"), True),
        (("x == 0", "C[k] = 0.0"), ("x == 0", "A[k] = C[k]"), True),
    ],
)
def test_what_one_thread_writes_twice_is_in_order(first, second, expected):
    first, second = (f"if {when}:\n                    {what}" for when, what in (first, second))
    assert conflict(first, second) is expected


def test_halves_change_from_one_iteration_to_the_next():
    body, conflicts = statements(FILL, "C[x] = T[k % 2, x]")
    assert conflicts.in_loop(body)
