"""Parallel loops: right with any number of threads and callers, in a child, and under Ctrl-C."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

from dlcompiler.errors import CallError
from dlcompiler.runtime import threads
from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.function import Function
from dlcompiler.runtime.llvm import compile_ir

#: C[0] = 1 at the start of each piece, then nothing until C[1] is set: a kernel that hangs.
WAIT = """
declare void @dlc_parallel_for(ptr, ptr, i64, i64)

define void @wait(ptr %c) {
  call void @dlc_parallel_for(ptr @piece, ptr %c, i64 0, i64 2)
  ret void
}

define internal void @piece(i64 %begin, i64 %end, ptr %c) {
  store atomic i32 1, ptr %c seq_cst, align 4
  %stop = getelementptr i32, ptr %c, i64 1
  br label %test
test:
  %x = load atomic i32, ptr %stop seq_cst, align 4
  %over = icmp ne i32 %x, 0
  br i1 %over, label %done, label %test
done:
  ret void
}
"""


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64])
def test_each_iteration_runs_once(count_up, count):
    threads.set_num_threads(count)
    try:
        c = np.zeros(1000, np.int32)
        for _ in range(20):
            count_up(c)
        np.testing.assert_array_equal(c, 20)
    finally:
        threads.set_num_threads(None)


def test_a_function_knows_that_it_uses_threads(count_up, add):
    assert count_up.uses_threads
    assert not add.uses_threads


@pytest.mark.usefixtures("four_threads")
def test_many_threads_may_call_at_once(count_up):
    arrays = [np.zeros(1000, np.int32) for _ in range(8)]

    def work(array):
        for _ in range(100):
            count_up(array)

    callers = [threading.Thread(target=work, args=(array,)) for array in arrays]
    for caller in callers:
        caller.start()
    work(extra := np.zeros(1000, np.int32))
    for caller in callers:
        caller.join()
    for array in [*arrays, extra]:
        np.testing.assert_array_equal(array, 100)


def test_the_number_of_threads():
    assert threads.num_threads() >= 1
    threads.set_num_threads(3)
    assert threads.num_threads() == 3
    threads.set_num_threads(None)


@pytest.mark.parametrize("wrong", [0, -1, True, 2.0, "2"])
def test_a_wrong_number_of_threads_is_refused(wrong):
    with pytest.raises(CallError) as caught:
        threads.set_num_threads(wrong)
    assert str(caught.value) == (
        "set_num_threads: not a number of threads\n"
        f"  got       {wrong!r}\n"
        "  expected  1 or more, or None"
    )


@pytest.mark.usefixtures("four_threads")
@pytest.mark.parametrize("bounds", [(0, 0), (5, 5), (5, 3)])
def test_an_empty_range_runs_nothing(bounds, options):
    begin, end = bounds
    text = f"""
    declare void @dlc_parallel_for(ptr, ptr, i64, i64)
    define void @f(ptr %c) {{
      call void @dlc_parallel_for(ptr @body, ptr %c, i64 {begin}, i64 {end})
      ret void
    }}
    define internal void @body(i64 %begin, i64 %end, ptr %c) {{
      store i32 1, ptr %c
      ret void
    }}
    """
    f = Function(compile_ir(text, options), "f", [Param("C", (1,), "int32", True)])
    c = np.zeros(1, np.int32)
    f(c)
    assert c[0] == 0


@pytest.mark.usefixtures("four_threads")
def test_an_error_in_a_region_reaches_the_caller_and_the_next_call_works(count_up, monkeypatch):
    c = np.zeros(1000, np.int32)
    with monkeypatch.context() as patch:
        patch.setattr(threads, "num_threads", lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            threads._run_here(count_up._kernel, [c.ctypes.data])
    count_up(c)


def test_without_threads_to_start_the_result_is_the_same(count_up, monkeypatch):
    def fail(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "_pool", threads._Pool())
    monkeypatch.setattr(threading.Thread, "start", fail)
    c = np.zeros(1000, np.int32)
    count_up(c)
    np.testing.assert_array_equal(c, 1)


@pytest.mark.usefixtures("four_threads")
def test_an_interrupt_waits_for_the_kernel_and_is_raised(options):
    wait = Function(compile_ir(WAIT, options), "wait", [Param("C", (2,), "int32", True)])
    c = np.zeros(2, np.int32)

    def interrupt_then_release():
        while not c[0]:
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        c[1] = 1

    helper = threading.Thread(target=interrupt_then_release)
    helper.start()
    with pytest.raises(KeyboardInterrupt):
        wait(c)
    assert c[1] == 1, "the kernel had not ended"
    helper.join()


def run_script(text):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=60
    )


PREPARE = """
    import os, sys, threading
    import numpy as np
    from dlcompiler.errors import DeviceUnavailable
    from dlcompiler.runtime.arguments import Param
    from dlcompiler.runtime.function import Function
    from dlcompiler.runtime.llvm import Options, compile_ir
    from dlcompiler.target import resolve
    text = '''
    declare void @dlc_parallel_for(ptr, ptr, i64, i64)
    define void @f(ptr %c) {
      call void @dlc_parallel_for(ptr @body, ptr %c, i64 0, i64 4)
      ret void
    }
    define internal void @body(i64 %begin, i64 %end, ptr %c) {
      store i32 1, ptr %c
      ret void
    }
    '''
    module = compile_ir(text, Options.for_target(resolve("cpu")))
    f = Function(module, "f", [Param("C", (1,), "int32", True)])
    c = np.zeros(1, np.int32)
"""


def test_a_forked_child_is_refused_before_its_code_runs():
    done = run_script(
        PREPARE
        + """
    f(c)
    c[0] = 0
    child = os.fork()
    if child == 0:
        try:
            f(c)
        except DeviceUnavailable as error:
            print(error, c[0], flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    f(c)
    print("parent", c[0])
    """
    )
    assert done.stdout == (
        "call f: a function with parallel loops cannot run in a forked child\n"
        "  because   fork copies one thread only: those of the pool are not here\n"
        "  hint      start processes by 'spawn' or 'forkserver', or build without parallel 0\n"
        "parent 1\n"
    ), done.stderr


@pytest.mark.parametrize(
    "ending",
    [
        "f(c)",
        "f(c); sys.exit(3)",
        "import atexit; atexit.register(f, c)",
        "t = threading.Thread(target=lambda: [f(c) for _ in range(300)]); t.start()",
        "t = threading.Thread(target=lambda: [f(c) for _ in range(10**9)], daemon=True); t.start();"
        " f(c)",
    ],
    ids=["idle", "exit status", "at exit", "running thread", "running daemon thread"],
)
def test_the_interpreter_ends(ending):
    done = run_script(PREPARE + f"    {ending}\n")
    assert done.returncode == (3 if "exit(3)" in ending else 0), done.stderr
    assert not done.stderr
