"""Folders that go away with their process, and what finds them when they could not."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from dlcompiler.cli import doctor
from dlcompiler.runtime import private_folders
from dlcompiler.runtime.private_folders import PREFIX, abandoned, private_folder, sweep
from dlcompiler.runtime.shared import SharedArrays

HOLDS = """
import pathlib, sys, time
from dlcompiler.runtime.private_folders import private_folder
with private_folder(sys.argv[1]) as folder:
    (folder / "0").write_bytes(bytes(1 << 20))
    print(folder, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def base(tmp_path, monkeypatch):
    """The only place where folders are looked for."""
    monkeypatch.setattr(private_folders, "MEMORY_FOLDER", tmp_path / "memory")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "disk"))
    (tmp_path / "memory").mkdir()
    (tmp_path / "disk").mkdir()
    return tmp_path / "memory"


@pytest.fixture
def holder(base):
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(base)], stdout=subprocess.PIPE, text=True
    )
    child.stdout.readline()
    yield child
    child.kill()
    child.communicate()


def test_a_folder_goes_away_at_the_end(base):
    with private_folder(base) as folder:
        assert folder.parent == base
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "0").write_bytes(b"x")
        assert abandoned() == sweep() == []
    assert list(base.iterdir()) == []


def test_a_folder_of_a_process_that_runs_stays(base, holder):
    assert abandoned() == sweep() == []
    assert len(list(base.iterdir())) == 1


def test_a_folder_of_a_process_that_was_killed_is_found_and_swept(base, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    (folder,) = abandoned()
    assert folder.parent == base
    assert doctor._leftovers() == (
        f"1 folders of processes that were killed, 1.0 MiB, in {base}; "
        "the next measurement removes them"
    )
    assert sweep() == [folder]
    assert list(base.iterdir()) == []
    assert doctor._leftovers().startswith("none: ")


def test_the_first_folder_of_a_process_sweeps(base, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    private_folders._sweep_once.cache_clear()
    with SharedArrays({"A": np.zeros(4)}) as shared:
        assert [str(path) for path in base.iterdir()] == [shared.describe()["folder"]]
    assert list(base.iterdir()) == []


def test_a_stopped_process_keeps_its_folder(base, holder):
    holder.send_signal(signal.SIGSTOP)
    time.sleep(0.05)
    assert sweep() == []
    holder.send_signal(signal.SIGCONT)


def test_folders_of_others_and_what_only_looks_like_ours_stays(base, tmp_path, monkeypatch):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("mine")
    (base / f"{PREFIX}link").symlink_to(kept)
    (base / f"{PREFIX}file").write_text("mine")
    os.mkfifo(base / f"{PREFIX}pipe")
    (base / "dlcompiler-other").mkdir()
    (base / f"{PREFIX}foreign").mkdir()
    own = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: own + 1)
    assert abandoned() == sweep() == []
    monkeypatch.setattr(os, "getuid", lambda: own)
    assert sweep() == [base / f"{PREFIX}foreign"]
    assert (kept / "file").read_text() == "mine"
    assert len(list(base.iterdir())) == 4


def test_links_inside_a_folder_are_not_followed(base, tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("mine")
    (base / f"{PREFIX}x").mkdir()
    (base / f"{PREFIX}x" / "link").symlink_to(kept)
    assert sweep() == [base / f"{PREFIX}x"]
    assert (kept / "file").read_text() == "mine"


def test_a_folder_that_is_swept_before_it_is_locked_is_made_again(base, monkeypatch):
    made = []
    locked = private_folders._locked

    def slow(folder):
        if not made:
            sweep()
        made.append(folder)
        return locked(folder)

    monkeypatch.setattr(private_folders, "_locked", slow)
    with private_folder(base) as folder:
        assert len(made) == 2
        assert folder == made[1]
        assert folder.is_dir()


def test_threads_that_make_and_sweep_at_once_lose_nothing(base):
    script = """
import sys, threading
from dlcompiler.runtime.private_folders import private_folder, sweep
def work():
    for n in range(60):
        with private_folder(sys.argv[1]) as folder:
            (folder / "0").write_text(str(n))
            sweep()
            assert (folder / "0").read_text() == str(n)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    environment = {**os.environ, "TMPDIR": str(base)}
    children = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(base)], env=environment, stderr=subprocess.PIPE
        )
        for _ in range(2)
    ]
    assert [child.communicate()[1] for child in children] == [b"", b""]
    assert list(base.iterdir()) == []


def test_what_a_thread_was_cut_off_from_goes_with_the_process(base):
    script = """
import sys, threading, time
from dlcompiler.runtime.private_folders import private_folder
ready = threading.Event()
def work():
    with private_folder(sys.argv[1]):
        ready.set()
        time.sleep(60)
threading.Thread(target=work, daemon=True).start()
ready.wait()
"""
    subprocess.run([sys.executable, "-c", script, str(base)], check=True)
    assert list(base.iterdir()) == []
