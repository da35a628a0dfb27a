"""Worker processes: each way in which a call can end, and what is left behind."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

from dlcompiler.errors import MeasurementError
from dlcompiler.runtime import private_folders
from dlcompiler.runtime.shared import SharedArrays, map_arrays
from dlcompiler.runtime.workers import Worker
from tests.processes import ends, has_ended

CHILD = """
import ctypes, os, signal, subprocess, sys, time
import numpy as np
from dlcompiler.errors import CallError
from dlcompiler.runtime.serve import serve

def fill(request):
    for array in request.arrays.values():
        array += request.params["amount"]
    return {"names": list(request.arrays)}

def user_error(request):
    raise CallError("call f", "wrong shape", got=(3,))

def flood(request):
    for _ in range(1000):
        os.write(2, b"x" * 65536)
    return {}

def writable(fd):
    try:
        return os.write(fd, b"") == 0
    except OSError:
        return False

def family(request):
    child = subprocess.Popen(["sleep", "1000"])
    print(child.pid, file=sys.stderr, flush=True)
    time.sleep(1000)

serve({
    "echo": lambda r: {"params": r.params, "bytes": len(r.data)},
    "fill": fill,
    "user_error": user_error,
    "bug": lambda r: 1 // 0,
    "not_json": lambda r: {"x": object()},
    "print": lambda r: print("on standard output") or os.write(1, b"raw") and {},
    "read": lambda r: {"text": sys.stdin.read()},
    "crash": lambda r: ctypes.string_at(0),
    "abort": lambda r: os.abort(),
    "leave": lambda r: os._exit(r.params["status"]),
    "close": lambda r: os.closerange(3, 20) or time.sleep(1000),
    "garbage": lambda r: [os.write(fd, b"nonsense" * 9) for fd in (3, 4, 5, 6) if writable(fd)],
    "hang": lambda r: time.sleep(1000),
    "flood": flood,
    "family": family,
    "eat": lambda r: {"n": len(np.ones(r.params["bytes"], np.uint8))},
    "pid": lambda r: {"pid": os.getpid(), "session": os.getsid(0)},
    "core": lambda r: {"limit": __import__("resource").getrlimit(4)[0]},
    "environment": lambda r: dict(os.environ),
})
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("worker") / "child.py"
    path.write_text(CHILD)
    return [sys.executable, str(path)]


@pytest.fixture(scope="module")
def worker(script):
    with Worker(script) as started:
        yield started


def test_parameters_bytes_and_values(worker):
    params = {"text": "é\n", "list": [1, 2.5, None]}
    outcome = worker.call("echo", params, data=b"\0" * 3_000_000, timeout_s=10)
    assert outcome.ok
    assert outcome.value == {"params": params, "bytes": 3_000_000}
    assert outcome.unwrap("echo") is outcome.value
    assert 0 < outcome.seconds < 10


def test_arrays_go_there_and_outputs_come_back(worker):
    arrays = {
        "a": np.arange(12, dtype=np.float32).reshape(3, 4),
        "b": np.ones((2, 5), np.int8)[:, ::2],
        "scalar": np.array(2.5),
        "empty": np.zeros((0, 3)),
    }
    outcome = worker.call("fill", {"amount": 1}, arrays=arrays, outputs=list(arrays), timeout_s=10)
    assert outcome.value["names"] == list(arrays)
    for name, array in arrays.items():
        assert outcome.arrays[name].shape == array.shape
        np.testing.assert_array_equal(outcome.arrays[name], array + 1)


def test_the_files_of_arrays_are_private_and_removed():
    with SharedArrays({"a": np.ones(3)}) as arrays:
        folder = Path(arrays.describe()["folder"])
        assert folder.stat().st_mode & 0o777 == 0o700
        np.testing.assert_array_equal(map_arrays(arrays.describe())["a"], 1)
    assert not folder.exists()


def test_without_room_in_memory_the_files_are_elsewhere(monkeypatch, tmp_path):
    monkeypatch.setattr(private_folders, "MEMORY_FOLDER", tmp_path / "nowhere")
    with SharedArrays({"a": np.ones(3)}) as arrays:
        assert map_arrays(arrays.describe())["a"].sum() == 3


def test_a_file_of_the_wrong_size_is_not_mapped():
    with SharedArrays({"a": np.ones(3)}) as arrays:
        description = arrays.describe()
        description["arrays"][0]["shape"] = [4000]
        with pytest.raises(MeasurementError, match="wrong size of a file"):
            map_arrays(description)


def test_a_user_error_keeps_its_text(worker):
    outcome = worker.call("user_error", timeout_s=10)
    assert (outcome.kind, outcome.error) == ("error", "CallError")
    assert outcome.message == "call f: wrong shape\n  got       (3,)"


def test_another_exception_is_an_outcome_with_its_traceback(worker):
    outcome = worker.call("bug", timeout_s=10)
    assert (outcome.kind, outcome.error) == ("error", "ZeroDivisionError")
    assert outcome.message.startswith("ZeroDivisionError: ")
    assert "Traceback" in outcome.stderr
    assert worker.call("echo", timeout_s=10).stderr == ""


def test_an_unknown_entry_point(worker):
    outcome = worker.call("os.system", {"command": "true"}, timeout_s=10)
    assert outcome.kind == "error"
    assert "call 'os.system' in a worker: no such entry point" in outcome.message


def test_an_answer_that_is_not_json(worker):
    outcome = worker.call("not_json", timeout_s=10)
    assert (outcome.kind, outcome.error) == ("error", "FrameError")


def test_a_request_that_is_not_json(worker):
    with pytest.raises(MeasurementError) as caught:
        worker.call("echo", {"x": float("nan")}, timeout_s=10)
    assert "call echo in a worker: the request cannot be sent" in str(caught.value)


def test_printing_and_reading_do_not_touch_the_protocol(worker):
    outcome = worker.call("print", timeout_s=10)
    assert outcome.ok
    assert "on standard output" in outcome.stderr
    assert worker.call("read", timeout_s=10).value == {"text": ""}


@pytest.mark.parametrize(("entry", "name"), [("crash", "SIGSEGV"), ("abort", "SIGABRT")])
def test_a_crash_is_an_outcome_with_its_signal(worker, entry, name):
    outcome = worker.call(entry, timeout_s=10)
    assert (outcome.kind, outcome.signal) == ("crashed", name)
    assert outcome.message == f"ended by {name}"
    assert outcome.seconds < 5
    with pytest.raises(MeasurementError, match="run C: the worker's outcome is crashed"):
        outcome.unwrap("run C")
    assert worker.call("echo", timeout_s=10).ok, "the next call has a new worker"


@pytest.mark.parametrize("status", [0, 7])
def test_a_process_that_leaves_is_a_crash(worker, status):
    outcome = worker.call("leave", {"status": status}, timeout_s=10)
    assert (outcome.kind, outcome.signal) == ("crashed", None)
    assert outcome.message == f"exited with status {status}, no answer"


@pytest.mark.parametrize("entry", ["close", "garbage"])
def test_a_worker_that_breaks_the_protocol_is_lost(worker, entry):
    generation = worker.generation
    outcome = worker.call(entry, timeout_s=10)
    assert outcome.kind == "lost"
    assert worker.call("echo", timeout_s=10).ok
    assert worker.generation > generation


def test_a_hang_ends_at_the_limit(worker):
    pid = worker.call("pid", timeout_s=10).value["pid"]
    outcome = worker.call("hang", timeout_s=0.3)
    assert outcome.kind == "timeout"
    assert outcome.message == "no answer within 0.3 s"
    assert 0.3 <= outcome.seconds < 30
    assert has_ended(pid)
    assert worker.call("echo", timeout_s=10).ok


def test_what_a_hanging_worker_started_ends_with_it(worker):
    outcome = worker.call("family", timeout_s=1.0)
    assert outcome.kind == "timeout"
    assert ends(int(outcome.stderr.split()[-1]))


def test_a_flood_on_standard_error_is_harmless(worker):
    outcome = worker.call("flood", timeout_s=30)
    assert outcome.ok
    assert len(outcome.stderr) <= 4096


def test_memory_beyond_the_limit_is_an_error(script):
    with Worker(script, memory_limit_bytes=1 << 30) as small:
        assert small.call("eat", {"bytes": 1 << 20}, timeout_s=10).ok
        outcome = small.call("eat", {"bytes": 4 << 30}, timeout_s=10)
        assert outcome.error in ("MemoryError", "_ArrayMemoryError")


def test_a_worker_killed_while_idle_is_replaced(worker):
    pid = worker.call("pid", timeout_s=10).value["pid"]
    os.kill(pid, signal.SIGKILL)
    # Its first thread is a zombie before the others have ended; only then can it be waited for.
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert worker.call("pid", timeout_s=10).value["pid"] != pid


def test_a_worker_has_its_own_session_and_leaves_no_core_file(worker):
    ids = worker.call("pid", timeout_s=10).value
    assert ids["session"] == ids["pid"]
    assert worker.call("core", timeout_s=10).value == {"limit": 0}


def test_a_worker_gets_a_small_environment(worker, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "x")
    worker.close()
    environment = worker.call("environment", timeout_s=10).value
    assert "SECRET_TOKEN" not in environment
    assert environment["OPENBLAS_NUM_THREADS"] == "1"


@pytest.mark.parametrize(
    "command", [["/bin/false"], ["/bin/echo", "x" * 100], [sys.executable, "-c", "1/0"]]
)
def test_a_command_that_is_no_worker_is_lost(command):
    outcome = Worker(command).call("echo", timeout_s=10)
    assert outcome.kind == "lost"
    assert outcome.message.startswith("the worker did not start: ")


def test_calls_from_several_threads_are_taken_one_at_a_time(worker):
    results = {}

    def call(number):
        results[number] = worker.call("echo", {"n": number}, timeout_s=20).value["params"]["n"]

    callers = [threading.Thread(target=call, args=(number,)) for number in range(12)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert results == {number: number for number in range(12)}


def test_closing_ends_the_process_and_the_next_call_starts_another(worker):
    pid = worker.call("pid", timeout_s=10).value["pid"]
    worker.close()
    worker.close()
    assert has_ended(pid)
    assert worker.call("echo", timeout_s=10).ok


def test_a_worker_without_references_ends(script):
    forgotten = Worker(script)
    pid = forgotten.call("pid", timeout_s=10).value["pid"]
    del forgotten
    assert ends(pid)


def test_a_worker_outlives_the_thread_that_started_it(script):
    with Worker(script) as fresh:
        first = threading.Thread(target=fresh.call, args=("echo",), kwargs={"timeout_s": 10})
        first.start()
        first.join()
        assert fresh.call("echo", timeout_s=10).ok
        assert fresh.generation == 1


@pytest.mark.usefixtures("ctrl_c")
def test_an_interrupted_call_ends_the_worker(worker):
    worker.call("echo", timeout_s=10)
    generation = worker.generation
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        worker.call("hang", timeout_s=20)
    assert worker.call("echo", {"n": 1}, timeout_s=10).value["params"] == {"n": 1}
    assert worker.generation == generation + 1


@pytest.mark.campaign
@pytest.mark.parametrize("end", ["sys.exit()", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_a_hanging_worker_ends_with_its_parent(script, end):
    parent = f"""
    import os, signal, sys, threading, time
    from dlcompiler.runtime.workers import Worker
    worker = Worker({script!r})
    print(worker.call("pid", timeout_s=10).value["pid"], flush=True)
    hang = threading.Thread(target=worker.call, args=("hang",), kwargs=dict(timeout_s=99))
    hang.daemon = True
    hang.start()
    time.sleep(0.3)
    {end}
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(parent)], capture_output=True, text=True, timeout=60
    )
    assert ends(int(done.stdout)), done.stderr


def test_a_forked_copy_of_the_parent_leaves_the_worker_alone(worker):
    pid = worker.call("pid", timeout_s=10).value["pid"]
    child = os.fork()
    if child == 0:
        worker._process._finalizer()
        os._exit(0)
    os.waitpid(child, 0)
    assert not has_ended(pid)
    assert worker.call("pid", timeout_s=10).value["pid"] == pid
