"""`merge_thread_loops`: one loop for each axis, with the barriers that their order asked for."""

from textwrap import dedent

import numpy as np
import pytest

from dlcompiler.errors import TargetError
from dlcompiler.ir import verify_func
from dlcompiler.passes.merge_thread_loops import merge_thread_loops
from dlcompiler.passes.split_host_device import split_host_device
from dlcompiler.simulate import interpret
from tests.passes.examples import example
from tests.passes.reading import read
from tests.thread_programs import as_one_nest

TWO_STAGES = """\
def main(A: float32[64], C: float32[64]):
    for i.outer in blockIdx.x(4):
        allocate B: float32[16] in shared
        for i in threadIdx.x(16):
            B[i] = A[i.outer*16 + i]
        for i.inner in threadIdx.x(16):
            C[i.outer*16 + i.inner] = B[-i.inner + 15]
"""


def merged(text):
    return as_one_nest(split_host_device(read(dedent(text))))


def body_of(func):
    """The printed lines, without the head and without indentation."""
    return [line.strip() for line in str(func).splitlines()[1:]]


def test_the_example_of_its_docstring():
    func = as_one_nest(split_host_device(read(example(merge_thread_loops, "Before"))))
    verify_func(func)
    assert str(func).rstrip() == example(merge_thread_loops, "After").rstrip()


def test_a_barrier_stands_between_stages_that_share_memory():
    lines = body_of(merged(TWO_STAGES))
    assert lines.count("barrier") == 1
    assert lines.index("B[i] = A[i.outer*16 + i]") < lines.index("barrier")


def test_no_barrier_stands_between_stages_that_share_nothing():
    text = TWO_STAGES.replace("B[-i.inner + 15]", "A[i.inner]")
    assert "barrier" not in body_of(merged(text))


def test_all_threads_may_prefetch():
    lines = body_of(
        merged("""\
        def main(A: float32[8], C: float32[4, 8]):
            for y in threadIdx.x(4):
                for k in range(2):
                    prefetch A[k*4]
                    for x in blockIdx.x(8):
                        C[y, x] = A[x]
        """)
    )
    assert "prefetch A[k*4]" in lines
    assert not any(line.startswith("if") for line in lines)


def test_memory_inside_a_thread_loop_has_a_copy_for_each_thread():
    func = merged("""\
        def main(A: float32[4, 8], C: float32[4, 8]):
            for y in threadIdx.y(4):
                allocate B: float32[8] in shared
                for x in threadIdx.x(8):
                    B[x] = A[y, x]
                for x2 in threadIdx.x(8):
                    C[y, x2] = B[-x2 + 7]
        """)
    lines = body_of(func)
    assert "allocate B: float32[4, 8] in shared" in lines
    assert "C[y, x2] = B[y, -x2 + 7]" in lines
    a, c = np.arange(32, dtype="float32").reshape(4, 8), np.zeros((4, 8), "float32")
    interpret(func, [a, c])
    np.testing.assert_array_equal(c, a[:, ::-1])


def test_a_loop_around_threads_has_a_barrier_at_its_end_if_iterations_share_memory():
    func = merged("""\
        def main(A: float32[4, 8], C: float32[8]):
            for z in blockIdx.x(1):
                allocate B: float32[8] in shared
                for k in range(4):
                    for x in threadIdx.x(8):
                        B[x] = A[k, x]
                    for x2 in threadIdx.x(8):
                        C[x2] = B[-x2 + 7]
        """)
    assert body_of(func).count("barrier") == 2
    a, c = np.arange(32, dtype="float32").reshape(4, 8), np.zeros(8, "float32")
    interpret(func, [a, c])
    np.testing.assert_array_equal(c, a[3, ::-1])


def test_all_threads_reach_a_barrier_under_a_condition():
    func = merged("""\
        def main(A: float32[8], n: float32[1], C: float32[8]):
            for z in blockIdx.x(1):
                allocate B: float32[8] in shared
                if n[0] > 0.0:
                    for x in threadIdx.x(8):
                        B[x] = A[x]
                    for x2 in threadIdx.x(4):
                        C[x2] = B[x2 + 4]
        """)
    for number, expected in ((1.0, [4, 5, 6, 7, 0, 0, 0, 0]), (0.0, [0] * 8)):
        c = np.zeros(8, "float32")
        interpret(func, [np.arange(8, dtype="float32"), np.array([number], "float32"), c])
        np.testing.assert_array_equal(c, expected)


def test_a_statement_that_each_block_would_repeat_is_refused():
    with pytest.raises(TargetError) as caught:
        merged("""\
            def main(A: float32[8], C: float32[8, 4]):
                for y in blockIdx.y(8):
                    C[y, 0] = A[y]
                    for x in blockIdx.x(4):
                        C[y, x] = A[y]
            """)
    assert str(caught.value).startswith(
        "generate code for main_kernel0: a statement is outside the loop of blockIdx.x"
    )
