"""`load_ahead`: the next tile is loaded before the work and stored behind it."""

import pytest

from dlcompiler.passes import load_ahead
from dlcompiler.target import resolve
from tests.passes.examples import after, shows

OLD, NEW = resolve("gtx-1080"), resolve("a100")
LOOP = """\
def main(A: float32[99], C: float32[8]):
    allocate T: float32[2, 32] in {scope}
    for x in threadIdx.x(8):
        for k in range(8):{pragma}
            barrier
            if k + 1 < 8:
                {fill}
            {work}
"""
PLAIN = "T[(k + 1) % 2, x] = A[k*8 + x]"


def ahead(func, target=OLD):
    return load_ahead(func, target=target)


def loop(fill, work="C[x] += T[k % 2, -x + 7]", target=OLD, scope="shared", pragma=True):
    mark = "  # async_copy = 1" if pragma else ""
    text = LOOP.format(fill=fill, work=work, scope=scope, pragma=mark)
    return after(lambda f: load_ahead(f, target=target), text)


def test_the_example_of_its_docstring():
    shows(load_ahead, ahead)


def test_only_loops_that_ask_for_it_change():
    assert "T.ahead" in loop(PLAIN)
    assert "T.ahead" not in loop(PLAIN, pragma=False)
    assert "T.ahead" not in loop(PLAIN, scope="local")


@pytest.mark.parametrize(
    ("fill", "is_copied"),
    [
        (PLAIN, True),
        ("T[(k + 1) % 2, x] = if_then_else(x < 3, A[k*8 + x], 0.0)", True),
        ("T[(k + 1) % 2, x] = A[k*8 + x]*2.0", False),
        ("for v in vectorized(4):\n    T[(k + 1) % 2, x*4 + v] = A[x*4 + v]", True),
        ("for v in vectorized(4):\n    T[(k + 1) % 2, v*8 + x] = A[x*4 + v]", False),
        ("for v in vectorized(8):\n    T[(k + 1) % 2, v] = A[v]", False),
        ("for v in vectorized(4):\n    T[(k + 1) % 2, x*4 + v] = A[x*v + v]", False),
    ],
)
def test_processors_that_copy_by_themselves_keep_plain_copies(fill, is_copied):
    fill = fill.replace("\n", "\n" + 16 * " ")
    assert ("T.ahead" not in loop(fill, target=NEW)) == is_copied
    assert "T.ahead" in loop(fill)


def test_registers_hold_all_elements_of_a_thread():
    fill = """for j in range(2):
    for v in vectorized(2):
        T[(k + 1) % 2, x*4 + j*2 + v] = A[j*2 + v]"""
    assert "allocate T.ahead: float32[2, 2] in local" in loop(fill.replace("\n", "\n" + 16 * " "))


@pytest.mark.parametrize(
    "work",
    ["C[x] += T[(k + 1) % 2, x]", "C[x] += T[k*3 % 2, x]", "T[1, x] = 0.0", "barrier"],
)
def test_work_that_may_use_the_same_half_or_waits_keeps_the_order(work):
    assert "T.ahead" not in loop(PLAIN, work)
