"""Commands as processes: signals, closed pipes, full disks, terminals that know only ASCII."""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dlcompiler.early_interrupts import is_command
from tests.cli.interrupts import (
    COMMANDS,
    ENTRY,
    command,
    folders_of,
    interrupted,
    one_case,
    prepared,
)  # fmt: skip
from tests.processes import take_signals

pytestmark = pytest.mark.campaign(whole_file=True)
ASCII = {"PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONCOERCECLOCALE": "0"}
LIMIT_S = 120
ROOT = Path(__file__).resolve().parents[2]
PRINTING = {
    "help": ["bench", "--help"],
    "version": ["--version"],
    "doctor": ["doctor"],
    "operators": ["operators"],
    "graph operators": ["graph-operators"],
    "frontends": ["frontends"],
    "passes": ["passes"],
    "primitives": ["primitives"],
    "list": ["db", "list", "{db}"],
    "list JSON": ["db", "list", "{db}", "--json"],
    "best": ["db", "best", "{db}"],
    "check": ["db", "check", "{db}"],
    "export": ["db", "export", "{db}", "-"],
    "page": ["bench", "--page", "{page}"],
}


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shell")
    return {**prepared(folder), "page": str(ROOT / "docs/benchmarks/paper.json")}


def start(words, places, **options):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    options = {**pipes, "preexec_fn": take_signals, **options}
    words = [word.format(**places) for word in words]
    words = [sys.executable, *words] if words[0] == "-m" else [str(ENTRY), *words]
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, **options)


def finished(words, places, **options):
    child = start(words, places, **options)
    out, err = child.communicate(timeout=LIMIT_S)
    return child.returncode, out, err


# -- signals ------------------------------------------------------------------------------------


@pytest.mark.campaign
@pytest.mark.parametrize("name", ["xgb", "compat", "module"])
@pytest.mark.parametrize("delay_s", [0.0, 0.05])
def test_ctrl_c_during_imports_is_one_line(name, delay_s, places):
    ended = interrupted(command(name, places), delay_s, signal.SIGINT)
    assert (ended.status, ended.said, ended.out) == (130, ["interrupted"], "")


@pytest.mark.parametrize("seed", range(3))
def test_signals_at_random_moments(seed, places):
    case, problem = one_case(seed, places, sorted(COMMANDS.keys() - {"tour"}))
    assert not problem, case


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130), (signal.SIGKILL, -9)],
)
def test_a_signal_during_a_measurement_leaves_no_files_in_memory(number, status, places):
    child = start(["bench", "gemm:512x512x512", "--peers", "numpy", "--seconds", "20"], places)
    try:
        folders = _shared_by(child.pid)
        child.send_signal(number)
        _, err = child.communicate(timeout=LIMIT_S)
    finally:
        child.kill()
    assert child.returncode == status
    if number == signal.SIGKILL:
        # The next command removes what is left, unless a worker that has not yet noticed the end of
        # its parent holds it, or the command of another test is removing it.
        words = ["bench", "gemm:8x8x8", "--peers", "numpy", "--seconds", "0.01"]
        end = time.perf_counter() + LIMIT_S
        assert finished(words, places)[0] == 0
        while any(folder.exists() for folder in folders) and time.perf_counter() < end:
            assert finished(words, places)[0] == 0
    else:
        said = "interrupted" if number == signal.SIGINT else "terminated"
        assert err == f"{said}\n"
    assert not any(folder.exists() for folder in folders)


def _shared_by(pid):
    """Wait until a process shares arrays; returns their folders."""
    end = time.perf_counter() + LIMIT_S
    while time.perf_counter() < end:
        if held := folders_of(pid):
            return held
        time.sleep(0.01)
    raise AssertionError("nothing was shared")


def test_sigterm_stops_a_search_and_keeps_what_it_has(places, tmp_path):
    words = ["tune", "gemm:64x64x64", "--trials", "5000", "--tuner", "random", "--json"]
    child = start([*words, "--db", str(tmp_path / "x.db")], places)
    line = child.stderr.readline()
    time.sleep(2)
    child.send_signal(signal.SIGTERM)
    out, err = child.communicate(timeout=LIMIT_S)
    assert child.returncode == 143, line + err
    assert json.loads(out)["state"] == "stopped"
    assert "Traceback" not in err


def test_signals_that_the_caller_ignores_stay_ignored(places):
    words = ["tune", "gemm:16x16x16", "--trials", "3", "--tuner", "random"]

    def ignore():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)

    child = start(words, places, preexec_fn=ignore)
    for _ in range(10):
        time.sleep(0.1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            child.send_signal(number)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    assert "best" in out


def test_an_interrupt_that_python_drops_is_raised_again():
    script = """
import os, signal, sys, time
from dlcompiler import shell
class Slow:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000): pass
def act(_):
    Slow()
    time.sleep(10)
    return 0
sys.exit(shell.run(lambda: None, act))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60,
        preexec_fn=take_signals,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_only_commands_answer_ctrl_c_in_their_own_way():
    assert is_command(["/usr/bin/dlcompiler", "tune"], ["python", "/usr/bin/dlcompiler", "tune"])
    assert is_command(["-m"], ["python", "-m", "dlcompiler.compat", "x.py"])
    assert is_command(["-m"], ["python", "-mdlcompiler"])
    assert not is_command(["-m"], ["python", "-m", "dlcompiler.measurement.worker"])
    assert not is_command(["/x/pytest/__main__.py"], ["python", "-m", "pytest", "dlcompiler"])
    assert not is_command(["-c"], ["python", "-c", "import dlcompiler"])
    assert not is_command([""], ["python"])
    assert not is_command([], [])


# -- streams ------------------------------------------------------------------------------------


@pytest.mark.campaign(longest=True)
@pytest.mark.parametrize("name", PRINTING)
def test_a_closed_pipe_is_quiet(name, places):
    read, write = os.pipe()
    os.close(read)
    status, _, err = finished(PRINTING[name], places, stdout=write)
    os.close(write)
    assert (status, err) == (141, "")


@pytest.mark.campaign(longest=True)
@pytest.mark.parametrize("name", PRINTING)
def test_a_full_disk_is_one_line(name, places):
    with open("/dev/full", "w") as full:
        status, _, err = finished(PRINTING[name], places, stdout=full)
    assert (status, err) == (2, "UserError: write standard output: No space left on device\n")


def test_a_closed_output_is_one_line(places):
    status, _, err = finished(["--version"], places, preexec_fn=lambda: os.close(1), stdout=None)
    assert (status, err) == (2, "UserError: write standard output: Bad file descriptor\n")


@pytest.mark.campaign
@pytest.mark.parametrize("words", [["--version"], ["db", "list", "nowhere"], ["tun"]])
def test_errors_that_nobody_can_read_change_nothing(words, places):
    expected = 0 if words == ["--version"] else 2
    with open("/dev/full", "w") as full:
        status, out, _ = finished(words, places, stderr=full)
    assert (status, "Error" in out) == (expected, False)
    status, out, _ = finished(words, places, preexec_fn=lambda: os.close(2), stderr=None)
    assert (status, "Error" in out) == (expected, False)


def test_a_closed_pipe_ends_a_long_command_early(places):
    words = ["bench", *["gemm:512x512x512", "gemm:512x512x256"] * 10, "--peers", "numpy"]
    child = start([*words, "--seconds", "5"], places)
    child.stdout.readline()
    child.stdout.close()
    assert child.wait(60) == 141
    assert child.stderr.read() == ""


def test_output_in_pieces_and_unbuffered(places):
    whole = finished(PRINTING["operators"], places)[1]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    assert finished(PRINTING["operators"], places, env=environment)[1] == whole
    read, write = os.pipe()
    os.set_blocking(write, False)
    child = start(PRINTING["operators"], places, stdout=write)
    os.close(write)
    time.sleep(1)
    with os.fdopen(read) as pipe:
        assert pipe.read() == whole
    assert child.wait() == 0


@pytest.mark.campaign(longest=True)
@pytest.mark.parametrize("name", PRINTING)
def test_an_ascii_terminal_gets_escapes(name, places):
    status, out, err = finished(PRINTING[name], places, env={**os.environ, **ASCII})
    assert (status, err) == (0, "")
    assert out
    assert out.isascii()


def test_measuring_commands_on_an_ascii_terminal(places):
    environment = {**os.environ, **ASCII}
    words = ["bench", "gemm:16x8x4", "--peers", "numpy", "--seconds", "0.01"]
    status, out, err = finished(words, places, env=environment)
    assert (status, err) == (0, "")
    words = ["tune", "gemm:16x8x4", "--trials", "2", "--tuner", "random"]
    status, out, err = finished(words, places, env=environment)
    assert status == 0
    assert "Traceback" not in err
    assert (out + err).isascii()


def test_a_classic_script_on_an_ascii_terminal_and_into_a_closed_pipe(places, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("print('×')\nprint('x' * 100000)\n")
    words = ["-m", "dlcompiler.compat", str(script)]
    status, out, err = finished(words, places, env={**os.environ, **ASCII})
    assert (status, out[:5], err) == (0, "\\xd7\n", "")
    read, write = os.pipe()
    os.close(read)
    assert finished(words, places, stdout=write)[::2] == (141, "")
    os.close(write)
    script.write_text("raise SystemExit('no × here')")
    assert finished(words, places)[::2] == (1, "no × here\n")
    script.write_text("1 / 0")
    status, _, err = finished(words, places)
    assert status == 1
    assert "ZeroDivisionError" in err  # a mistake of the script's keeps its traceback


# -- files on a full disk -------------------------------------------------------------------------

WRITING = {
    "export": ["db", "export", "{db}", "{disk}/out.jsonl"],
    "export to a log": ["db", "export", "{db}", "{disk}/out.log", "--autotvm"],
    "import": ["db", "import", "{disk}/new.db", "{lines}"],
    "tune": ["tune", "gemm:8x8x8", "--trials", "2", "--tuner", "random", "--db", "{disk}/new.db"],
    "save": ["bench", "gemm:8x8x8", "--peers", "numpy", "--seconds", "0.01", "--save", "{disk}/x"],
    "tour": ["tour", "--notebook", "{book}", "--output", "{disk}"],
}


@pytest.mark.campaign(longest=True)
@pytest.mark.parametrize("name", WRITING)
def test_a_limit_on_the_size_of_files_is_an_error_of_a_few_lines(name, places, tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    words = [word.replace("{disk}", str(tmp_path)) for word in WRITING[name]]
    # Python 3.11 would keep the first 100 bytes of a file of byte code, for everyone after it.
    bare = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    status, _, err = finished(words, places, env=bare, preexec_fn=limit)
    assert status in (1, 2)
    assert "Traceback" not in err
    assert "rror" in err
    assert [path.name for path in tmp_path.iterdir() if path.stat().st_size > 100] == []


@pytest.fixture
def full_disk(tmp_path):
    """A file system with room for a few pages only, where this user may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a file system")
    with contextlib.suppress(OSError), (disk / "fills").open("wb", buffering=0) as stream:
        while True:
            stream.write(bytes(1 << 10))
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.campaign(longest=True)
@pytest.mark.parametrize("name", WRITING)
def test_a_full_disk_leaves_nothing_half_written(name, places, full_disk):
    words = [word.replace("{disk}", str(full_disk)) for word in WRITING[name]]
    status, _, err = finished(words, places)
    assert status in (1, 2)
    assert "Traceback" not in err
    assert "disk" in err or "space" in err
    assert [path.name for path in full_disk.iterdir()] == ["fills"]


def test_nothing_is_left_where_temporary_files_have_no_room(places, full_disk):
    environment = {**os.environ, "TMPDIR": str(full_disk)}
    words = ["bench", "gemm:64x64x64", "--peers", "numpy", "--seconds", "0.01"]
    status, _, err = finished(words, places, env=environment)
    assert status in (0, 1, 2)
    assert "Traceback" not in err
