"""Parallel loops: right with any number of threads and callers, in a child, and under Ctrl-C."""

import ctypes
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

from dlcompiler.errors import CallError, ProgramError
from dlcompiler.runtime import native, threads
from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.function import Function
from dlcompiler.runtime.llvm import compile_ir
from dlcompiler.runtime.thread_pool import THREAD_POOL
from dlcompiler.target.detect import available_cores

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


#: Iterations 3 and 7 of 8 fail, as assertions do: their number goes to the status if it is 0.
FAIL = """
declare void @dlc_parallel_for(ptr, ptr, i64, i64)

define void @fail(ptr %c, ptr %status) {
  call void @dlc_parallel_for(ptr @piece, ptr %status, i64 0, i64 8)
  ret void
}

define internal void @piece(i64 %begin, i64 %end, ptr %status) {
entry:
  br label %test
test:
  %i = phi i64 [ %begin, %entry ], [ %next, %go.on ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %look, label %done
look:
  %part = and i64 %i, 3
  %bad = icmp eq i64 %part, 3
  br i1 %bad, label %fail, label %go.on
fail:
  %number = sdiv i64 %i, 3
  %old = cmpxchg ptr %status, i64 0, i64 %number monotonic monotonic
  br label %go.on
go.on:
  %next = add i64 %i, 1
  br label %test
done:
  ret void
}
"""


@pytest.mark.usefixtures("four_threads")
def test_the_first_task_that_fails_is_the_error_of_the_call(options, count_up):
    c = Param("C", (1,), "int32", True)
    fail = Function(compile_ir(FAIL, options), "fail", [c], messages=["third", "seventh"])
    for _ in range(50):
        with pytest.raises(ProgramError, match=r"call fail: (third|seventh)$"):
            fail(np.zeros(1, np.int32))
        count_up(np.zeros(1000, np.int32))


def test_without_threads_to_start_the_result_is_the_same(count_up, monkeypatch):
    def fail(self):
        raise RuntimeError("can't start new thread")

    threads.set_num_threads(1)
    count_up(np.zeros(1000, np.int32))
    threads.set_num_threads(4)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fail)
        c = np.zeros(1000, np.int32)
        count_up(c)
    np.testing.assert_array_equal(c, 1)
    assert not THREAD_POOL.helpers
    threads.set_num_threads(None)


def test_the_number_of_threads_may_change_during_calls(count_up):
    arrays = [np.zeros(1000, np.int32) for _ in range(3)]

    def work(array):
        for _ in range(300):
            count_up(array)

    callers = [threading.Thread(target=work, args=(array,)) for array in arrays]
    for caller in callers:
        caller.start()
    for count in range(60):
        threads.set_num_threads(1 + count * 7 % 5)
        count_up(np.zeros(1000, np.int32))
    for caller in callers:
        caller.join()
    threads.set_num_threads(None)
    for array in arrays:
        np.testing.assert_array_equal(array, 300)


@pytest.mark.parametrize("count", [2, 4, 40])
def test_idle_helpers_sleep_and_surplus_ones_leave(count_up, count):
    threads.set_num_threads(count)
    count_up(np.zeros(1000, np.int32))
    helpers = THREAD_POOL.helpers
    assert len(helpers) == count - 1
    sleepers = ctypes.CFUNCTYPE(ctypes.c_int32)(native.address("dlc_pool_sleepers"))
    assert comes_true(lambda: sleepers() == count - 1)
    threads.set_num_threads(1)
    count_up(np.zeros(1000, np.int32))
    assert not THREAD_POOL.helpers
    assert not any(helper.is_alive() for helper in helpers)
    assert sleepers() == 0
    threads.set_num_threads(None)


def test_helpers_stay_awake_until_a_model_ends(count_up):
    if available_cores() < 2:
        pytest.skip("one core: helpers do not spin")
    hold, release = (ctypes.CFUNCTYPE(None)(native.address(name)) for name in native.HOLDING)
    sleepers = ctypes.CFUNCTYPE(ctypes.c_int32)(native.address("dlc_pool_sleepers"))
    threads.set_num_threads(2)
    count_up(np.zeros(1000, np.int32))
    assert comes_true(lambda: sleepers() == 1)
    hold()
    assert comes_true(lambda: sleepers() == 0), "it is woken"
    assert comes_true(lambda: sleepers() == 1), "a model of some seconds does not keep a core busy"
    array = np.zeros(1000, np.int32)
    count_up(array)
    np.testing.assert_array_equal(array, 1)
    release()
    assert comes_true(lambda: sleepers() == 1)
    threads.set_num_threads(None)


def comes_true(condition):
    end = time.monotonic() + 10
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.001)
    return found


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinity on this system")
def test_helpers_stay_away_from_the_caller(count_up):
    before = os.sched_getaffinity(0)
    if len(before) < 2:
        pytest.skip("one core")
    threads.set_num_threads(2)
    try:
        for cpu in [*sorted(before)[:2]] * 2:
            os.sched_setaffinity(0, {cpu})
            os.sched_setaffinity(0, before)
            count_up(np.zeros(1000, np.int32))
            (helper,) = THREAD_POOL.helpers
            allowed = os.sched_getaffinity(helper.native_id)
            assert allowed < before
            assert len(allowed) == len(before) - 1
        assert os.sched_getaffinity(0) == before
        os.sched_setaffinity(0, {cpu})
        threads.set_num_threads(3)  # more than the cores that the caller may use
        count_up(np.zeros(1000, np.int32))
        assert [os.sched_getaffinity(w.native_id) for w in THREAD_POOL.helpers] == [{cpu}] * 2
    finally:
        os.sched_setaffinity(0, before)
        threads.set_num_threads(None)


@pytest.mark.usefixtures("four_threads", "ctrl_c")
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
    from dlcompiler.runtime import native, threads
    from dlcompiler.runtime.arguments import Param
    from dlcompiler.runtime.function import Function
    from dlcompiler.runtime.llvm import Options, compile_ir
    from dlcompiler.runtime.thread_pool import THREAD_POOL
    from dlcompiler.target import resolve
    text = '''
    declare void @dlc_parallel_for(ptr, ptr, i64, i64)
    define void @f(ptr %c) {
      call void @dlc_parallel_for(ptr @body, ptr %c, i64 0, i64 4)
      ret void
    }
    define internal void @body(i64 %begin, i64 %end, ptr %c) {
      %n = sub i64 %end, %begin
      %old = atomicrmw add ptr %c, i64 %n seq_cst
      ret void
    }
    '''
    module = compile_ir(text, Options.for_target(resolve("cpu")))
    f = Function(module, "f", [Param("C", (1,), "int64", True)])
    c = np.zeros(1, np.int64)
    threads.set_num_threads(3)
"""


def test_a_forked_child_starts_helpers_of_its_own():
    done = run_script(
        PREPARE
        + """
    def work(name):
        c = np.zeros(1, np.int64)
        for _ in range(1000):
            f(c)
        print(name, c[0], len(THREAD_POOL.helpers), flush=True)

    busy = threading.Thread(target=lambda: [f(np.zeros(1, np.int64)) for _ in range(10000)])
    busy.start()
    for _ in range(5):
        child = os.fork()
        if child == 0:
            work("child")
            if os.fork() == 0:
                work("its child")
                os._exit(0)
            assert os.wait()[1] == 0
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    work("parent")
    """
    )
    assert done.stdout == "child 4000 2\nits child 4000 2\n" * 5 + "parent 4000 2\n", done.stderr


def test_waiting_without_futex():
    done = run_script(
        PREPARE.replace("text = ", "native.has_futex = lambda: False\n    text = ")
        + """
    import time
    callers = [threading.Thread(target=lambda: [f(c) for _ in range(500)]) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    for _ in range(20):
        f(c)
        time.sleep(0.001)
    print(c[0], len(THREAD_POOL.helpers))
    """
    )
    assert done.stdout == f"{4 * 1520} 2\n", done.stderr


@pytest.mark.campaign
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
