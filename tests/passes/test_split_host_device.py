"""`split_host_device`: a kernel for each nest, the memory between them, what no thread computes."""

import inspect
import sys
import textwrap
from textwrap import dedent

from dlcompiler.ir import verify_func
from dlcompiler.passes.split_host_device import split_host_device
from tests.passes.examples import example
from tests.passes.reading import read


def test_the_example_of_its_docstring():
    program = split_host_device(read(example(split_host_device, "Before")))
    assert [buffer.name for buffer in program.temporaries] == ["B"]
    first, second = program.launches
    assert (first.count("blockIdx.x"), first.count("threadIdx.x")) == (64, 1)
    assert second.size == "blockIdx.x 2, threadIdx.x 32"
    shown = inspect.getdoc(sys.modules[split_host_device.__module__])
    assert textwrap.indent(str(second.kernel), "    ").rstrip() in shown
    for launch in program.launches:
        verify_func(launch.kernel)


def test_the_longest_of_loops_beside_each_other_says_how_many_threads():
    program = split_host_device(
        read(
            dedent("""\
            def main(A: float32[64], C: float32[64]):
                for i in blockIdx.x(2):
                    allocate B: float32[32] in shared
                    for t in threadIdx.x(8):
                        B[t] = A[t]
                    for t in threadIdx.x(32):
                        C[i*32 + t] = B[7]
            """)
        )
    )
    assert program.launches[0].size == "blockIdx.x 2, threadIdx.x 32"
    assert program.temporaries == ()


def test_a_symbol_may_say_which_loop_is_longer():
    (launch,) = split_host_device(
        read(
            dedent("""\
            def main(A: float32[n], C: float32[n]):
                for i in blockIdx.x(1):
                    allocate B: float32[8] in shared
                    for t in threadIdx.x(8):
                        B[t] = A[0]
                    for t in threadIdx.x(n):
                        C[t] = B[7]
            """)
        )
    ).launches
    assert launch.size == "blockIdx.x 1, threadIdx.x max(8, n)"


def test_a_symbol_is_handed_on():
    (launch,) = split_host_device(
        read(
            dedent("""\
            def main(A: float32[n], C: float32[n]):
                for i in blockIdx.x(n):
                    C[i] = A[i]
            """)
        )
    ).launches
    assert launch.count("blockIdx.x") is None
    assert launch.size == "blockIdx.x n"


def test_a_size_that_only_addresses_need_is_handed_on():
    (launch,) = split_host_device(
        read(
            dedent("""\
            def main(A: float32[n, m], C: float32[n, m]):
                for i in range(n):
                    for j in threadIdx.x(4):
                        C[i, j] = A[i, j]
            """)
        )
    ).launches
    assert [var.name for var in launch.kernel.variables] == ["m", "i"]


def test_a_loop_around_threads_is_the_hosts():
    program = split_host_device(
        read(
            dedent("""\
            def main(A: float32[8, 4], C: float32[8, 4]):
                for t in range(7):
                    allocate B: float32[4]
                    for i in threadIdx.x(4):
                        B[i] = C[t, i]
                    if t < 6:
                        for i in blockIdx.x(4):
                            C[t + 1, i] = B[i] + A[t + 1, i]
            """)
        )
    )
    assert [buffer.name for buffer in program.temporaries] == ["B"]
    assert str(program) == dedent("""\
        # launch: threadIdx.x 4, for t in range(7)
        def main_kernel0(C: float32[8, 4], B: float32[4], t: index):
            for i in threadIdx.x(4):
                B[i] = C[t, i]

        # launch: blockIdx.x 4, for t in range(7)
        def main_kernel1(A: float32[8, 4], B: float32[4], C: float32[8, 4], t: index):
            if t < 6:
                for i in blockIdx.x(4):
                    C[t + 1, i] = B[i] + A[t + 1, i]
        """)
    for launch in program.launches:
        verify_func(launch.kernel)


def test_a_nest_without_threads_is_a_kernel_of_one():
    (launch,) = split_host_device(
        read(
            dedent("""\
            def main(A: float32[64], C: float32[64]):
                for i in range(64):
                    C[i] = A[i]
            """)
        )
    ).launches
    assert launch.size == "one thread"


def test_different_symbols_are_different_numbers_of_blocks():
    program = split_host_device(
        read(
            dedent("""\
            def main(A: float32[2, n], C: float32[2, m]):
                for i in blockIdx.y(2):
                    for a in blockIdx.x(n):
                        A[i, a] = 1.0
                    for c in blockIdx.x(m):
                        C[i, c] = 2.0
            """)
        )
    )
    assert program.launches[0].size == "blockIdx.x max(n, m), blockIdx.y 2"
