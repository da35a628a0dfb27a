"""`inject_virtual_threads`: one thread runs several in turns, and the results stay."""

from functools import partial
from textwrap import dedent

import pytest

from dlcompiler.errors import ScheduleError
from dlcompiler.passes import inject_virtual_threads
from tests.passes.examples import after, shows


def test_the_example_of_its_docstring():
    shows(inject_virtual_threads)


def injected(text, **options):
    return after(partial(inject_virtual_threads, **options), text)


def test_loops_around_run_once_for_all():
    assert injected("""\
        def main(A: float32[8], C: float32[2]):
            for v in vthread(2):
                C[v] = 0.0
                for k in range(4):
                    C[v] += A[v*4 + k]
        """) == dedent("""\
        def main(A: float32[8], C: float32[2]):
            C[0] = 0.0
            C[1] = 0.0
            for k in range(4):
                C[0] += A[0*4 + k]
                C[1] += A[1*4 + k]
        """)


def test_all_of_them_come_to_a_barrier_together():
    assert injected("""\
        def main(A: float32[8], C: float32[8]):
            allocate B: float32[8] in shared
            for v in vthread(2):
                for t in threadIdx.x(4):
                    B[v*4 + t] = A[v*4 + t]
                    barrier
                    C[v*4 + t] = B[7 - v*4 - t]
        """) == dedent("""\
        def main(A: float32[8], C: float32[8]):
            allocate B: float32[8] in shared
            for t in threadIdx.x(4):
                B[0*4 + t] = A[0*4 + t]
                B[1*4 + t] = A[1*4 + t]
                barrier
                C[0*4 + t] = B[7 - 0*4 - t]
                C[1*4 + t] = B[7 - 1*4 - t]
        """)


def test_many_are_a_loop():
    assert injected(
        """\
        def main(A: float32[8], C: float32[8]):
            for v in vthread(8):
                if A[0] > 0.0:
                    C[v] = A[v]
        """,
        max_unrolled=4,
    ) == dedent("""\
        def main(A: float32[8], C: float32[8]):
            if A[0] > 0.0:
                for v in range(8):
                    C[v] = A[v]
        """)


def test_a_condition_of_one_is_its_own():
    assert injected("""\
        def main(A: float32[8], C: float32[2]):
            for v in vthread(2):
                if A[v] > 0.0:
                    C[v] = A[v]
        """) == dedent("""\
        def main(A: float32[8], C: float32[2]):
            if A[0] > 0.0:
                C[0] = A[0]
            if A[1] > 0.0:
                C[1] = A[1]
        """)


def test_what_a_copy_allocates_is_its_own():
    text = injected("""\
        def main(A: float32[8], C: float32[2]):
            for v in vthread(2):
                if A[v] > 0.0:
                    allocate B: float32[1] in local
                    B[0] = A[7]
                    C[v] = B[0]
        """)
    assert text.count("allocate B: float32[1] in local") == 2


def test_what_is_the_same_for_all_is_computed_once():
    assert injected("""\
        def main(A: float32[8], C: float32[2]):
            for v in vthread(2):
                allocate B: float32[1] in local
                B[0] = A[0]*2.0
                C[v] = B[0]
        """) == dedent("""\
        def main(A: float32[8], C: float32[2]):
            allocate B: float32[1] in local
            B[0] = A[0]*2.0
            C[0] = B[0]
            C[1] = B[0]
        """)


def test_values_that_belong_together_stay_together():
    assert (
        injected("""\
        def main(A: float32[8], C: float32[2]):
            for v in vthread(2):
                allocate B: float32[2] in local
                B[0] = A[v]
                B[1] = A[v]
                next = B[0] + B[1]
                B[0] = B[1]
                C[v] = next
        """).count("next = ")
        == 2
    )


def test_two_kinds_of_virtual_threads_multiply():
    text = injected("""\
        def main(A: float32[4], C: float32[4]):
            for v in vthread(2):
                for w in vthread(2):
                    allocate B: float32[1] in local
                    B[0] = A[v*2 + w]
                    C[v*2 + w] = B[0]
        """)
    assert "allocate B: float32[2, 2, 1] in local" in text
    assert text.count("C[") == 4


def test_a_barrier_that_only_some_reach_is_refused():
    with pytest.raises(ScheduleError) as caught:
        injected("""\
            def main(A: float32[8], C: float32[8]):
                for v in vthread(2):
                    if A[v] > 0.0:
                        barrier
            """)
    assert str(caught.value) == (
        "inject virtual threads v: only some of the virtual threads would reach a barrier\n"
        "  got       A[v] > 0.0\n"
        "  hint      attach what they share outside the condition"
    )


def test_their_number_must_be_known():
    with pytest.raises(ScheduleError) as caught:
        injected("""\
            def main(A: float32[n], C: float32[n]):
                for v in vthread(n):
                    C[v] = A[v]
            """)
    assert str(caught.value) == (
        "inject virtual threads v: the number of virtual threads is not a constant\n"
        "  got       n\n"
        "  hint      split the loop by a number, and bind the inner one"
    )


NESTS = """\
def main(A: int8[2, 4, 16], C: int8[2, 4, 16]):
    for v in vthread(2):
        allocate T: int8[4, 16] in vta-pynq.inp
        allocate S: int32[4, 16] in vta-pynq.acc
        for i in range(4):
            for j in range(16):
                T[i, j] = A[v, i, j]
        for i in range(4):
            for j in range(16):
                S[i, j] = int32(T[i, j])
        for i in range(4):
            for j in range(16):
                S[i, j] = S[i, j] >> 1
        for i in range(4):
            for j in range(16):
                C[v, i, j] = int8(S[i, j])
"""


def test_whole_nests_of_an_engine_stay_together():
    found = after(partial(inject_virtual_threads, whole_nests=True), NESTS)
    lines = [line.strip() for line in found.splitlines()]
    order = [line.partition("[")[0] for line in lines if " = " in line or "vthread" in line]
    loop = "for v in vthread(2):"
    assert order == [loop, "T", loop, "S", "S", loop, "C"]
