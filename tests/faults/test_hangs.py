"""A hang in the compiler or a kernel is ended at its time limit, with all its processes.

Costs about 18 s: limits that are waited for.
"""

import contextlib
import os
import sys
import threading
import time
from pathlib import Path

import pytest

from dlcompiler.measurement.candidates import Ceiling
from tests.faults.candidates import FOREVER, job, kernel, measured, one, open_bench
from tests.processes import ends

LIMIT_S = 1.0
LATE_S = 30.0  # of a busy machine; on an idle one, 0.1 s
"""How late a hanging candidate may be killed, and the next one begin."""
FAIR_S = 4.0
"""A limit that a good candidate keeps on a busy machine; on an idle one it takes 0.05 s."""

SLOW_TO_COMPILE = kernel(
    "  %x = load <32768 x float>, ptr %A, align 4\n  %y = fadd <32768 x float> %x, %x\n"
    "  store <32768 x float> %y, ptr %C\n  ret void"
)
FAMILY = """
import subprocess, sys, time
from dlcompiler.measurement import checked, worker

def build_with_a_child(self, request):
    if b"hang" in request.data:
        print(subprocess.Popen(["sleep", "1000"]).pid, file=open({path!r}, "w"), flush=True)
        time.sleep(1000)
    return build(self, request)

def run_with_a_child(self, request):
    if request.params["interface"]["messages"]:
        print(subprocess.Popen(["sleep", "1000"]).pid, file=open({path!r}, "w"), flush=True)
        time.sleep(1000)
    return run(self, request)

build, run = checked.CheckedKernels.compile, checked.CheckedKernels.candidate
checked.CheckedKernels.compile = build_with_a_child
checked.CheckedKernels.candidate = run_with_a_child
worker.main()
"""


def descendants(pid):
    """Return the processes that a process has started, and theirs."""
    found = []
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(FileNotFoundError):  # the thread, or the process, has ended
            children = (thread / "children").read_text().split()
            found += [n for child in children for n in (int(child), *descendants(child))]
    return found


@pytest.mark.campaign
def test_a_hang_in_the_compiler_is_killed_and_the_next_one_is_built_at_once():
    with open_bench(ceiling=Ceiling(build_s=LIMIT_S, run_s=20.0)) as bench:
        assert one(bench).outcome == "ok"
        start = time.perf_counter()
        late, good = measured(bench, [job(SLOW_TO_COMPILE), job()])
        total_s = time.perf_counter() - start
    assert (late.outcome, good.outcome) == ("build timeout", "ok")
    print(f"killed after {late.build_s:.2f} s, the next one after {total_s:.2f} s", end="")
    assert LIMIT_S <= late.build_s <= LIMIT_S + LATE_S
    assert total_s <= LIMIT_S + 2 * LATE_S


def test_a_hang_of_a_kernel_is_killed_and_the_next_one_runs_at_once():
    with open_bench(ceiling=Ceiling(build_s=20.0, run_s=LIMIT_S)) as bench:
        assert one(bench).outcome == "ok"
        start = time.perf_counter()
        late, good = measured(bench, [job(kernel(FOREVER)), job()])
        total_s = time.perf_counter() - start
    assert (late.outcome, good.outcome) == ("run timeout", "ok")
    print(f"killed after {late.run_s:.2f} s, the next one after {total_s:.2f} s", end="")
    assert LIMIT_S <= late.run_s <= LIMIT_S + LATE_S
    assert total_s <= LIMIT_S + 2 * LATE_S


@pytest.mark.campaign
@pytest.mark.parametrize("where", ["build", "run"])
def test_a_child_of_what_hangs_ends_with_it(where, tmp_path):
    before = set(descendants(os.getpid()))  # workers that other tests keep
    path = tmp_path / "pid"
    command = (sys.executable, "-c", FAMILY.format(path=str(path)))
    with open_bench(ceiling=Ceiling(FAIR_S, FAIR_S), command=command) as bench:
        assert one(bench).outcome == "ok"
        text, messages = (kernel("ret void ; hang"), ()) if where == "build" else (None, ["hang"])
        late = one(bench, *([text] if text else [kernel("  ret void"), messages]))
        assert late.outcome == f"{where} timeout"
        child = int(path.read_text())
        assert ends(child), "an orphan"
        assert one(bench).outcome == "ok"
    assert set(descendants(os.getpid())) <= before


def test_stopping_ends_an_endless_kernel():
    before = set(descendants(os.getpid()))  # workers that other tests keep
    with open_bench() as bench:
        assert one(bench).outcome == "ok"
        reported = []
        thread = threading.Thread(
            target=bench.measure,
            args=([job(kernel(FOREVER)), job()], None, lambda *args: reported.append(args)),
        )
        thread.start()
        time.sleep(0.5)
        asked = time.perf_counter()
        bench.interrupt()
        answered_s = time.perf_counter() - asked
        thread.join(60)
        print(f"back after {answered_s * 1e3:.0f} ms", end="")
        print(f", ended after {(time.perf_counter() - asked) * 1e3:.0f} ms", end="")
        assert not thread.is_alive()
        assert set(descendants(os.getpid())) <= before
        assert not [number for number, _ in reported if number == 0]
        assert one(bench).outcome == "ok"
