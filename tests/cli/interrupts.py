"""A campaign: signals at random moments of every command, from its first import to its end.

``python -m tests.cli.interrupts --count 200 --seed 1`` prints each failure with its seed;
``--seed S --count 1`` repeats one. The suite runs a few.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from dlcompiler.runtime.private_folders import PREFIX
from tests.processes import descendants, take_signals

ENTRY = Path(sys.executable).with_name("dlcompiler")
MARKER = b"dlcompiler.early_interrupts"
"""What Python says once the first module of ours is there; before that, Ctrl-C is Python's own."""
NORMAL = (0, 1, 2)
SCRIPT = "import tvm, time\nfrom tvm import te\nprint(te.placeholder((4,)))\ntime.sleep(1)\n"

COMMANDS = {
    "version": ["--version"],
    "help": ["bench", "--help"],
    "doctor": ["doctor"],
    "operators": ["operators"],
    "list": ["db", "list", "{db}"],
    "export": ["db", "export", "{db}", "{folder}/out.jsonl", "--overwrite"],
    "import": ["db", "import", "{folder}/new.db", "{lines}"],
    "random": ["tune", "gemm:64x64x64", "--trials", "40", "--tuner", "random", "--db", "{new}"],
    "xgb": ["tune", "gemm:64x64x64", "--trials", "48", "--json"],
    "works": [
        "bench",
        "gemm:512x512x512",
        "--peers",
        "numpy",
        "--seconds",
        "0.5",
        "--save",
        "{new}",
    ],
    "intrinsics": ["bench", "--suite", "intrinsics"],
    "figures": ["bench", "--only", "import", "--only", "lowering"],
    "table": ["bench", "--measure-table", "gemm:64x64x64", "--points", "50", "--into", "{folder}"],
    "tour": ["tour", "--notebook", "{book}", "--output", "{folder}/tour", "--overwrite"],
    "compat": ["-m", "dlcompiler.compat", "{script}"],
    "threads": ["-m", "dlcompiler.bench.threads"],
    "module": ["-m", "dlcompiler", "doctor"],
}
"""What a command is called -> its arguments; ``-m`` stands for Python's."""


@dataclass(frozen=True)
class Ended:
    """How a command ended that was sent a signal."""

    status: int
    out: str
    said: list[str]
    """Lines of standard error, without what Python says of imports."""
    seconds: float
    """From the signal to its end [s]."""
    was_running: bool
    folders: frozenset[Path]
    """Private folders that its processes held when the signal came."""

    def problem(self, number: int) -> str:
        """Return what is wrong with it; nothing if all is well."""
        text = "\n".join(self.said)
        if "Traceback" in text or "Exception ignored" in text or "Fatal" in text:
            return f"not one line:\n{text}"
        # By the signal itself: before SIGTERM has a handler, and when Python has put away its own.
        is_killed = self.status == -number and not self.said_interrupted()
        if self.status == 128 + number or is_killed:
            return "" if self.seconds < 60 else f"took {self.seconds:.1f} s"
        if self.status in NORMAL and not self.said_interrupted():
            return ""  # it had ended, or was about to
        return f"status {self.status}:\n{text}"

    def said_interrupted(self) -> bool:
        return any(line in ("interrupted", "terminated") for line in self.said)


def prepared(folder: Path) -> dict[str, str]:
    """Return what commands need, made in a folder."""
    from dlcompiler.autotune import RecordStore, write_records
    from tests.cli.test_db import record

    records = [record(n) for n in range(50)]
    with RecordStore(folder / "records.db") as store:
        store.add(records)
    write_records(records, folder / "lines.jsonl")
    (folder / "script.py").write_text(SCRIPT)
    nbformat = importlib.import_module("nbformat")  # it takes a second
    cells = [nbformat.v4.new_code_cell("1 + 1") for _ in range(3)]
    book = nbformat.v4.new_notebook(cells=cells)
    nbformat.write(book, folder / "small.ipynb")
    return {
        "folder": str(folder), "db": str(folder / "records.db"), "new": str(folder / "new"),
        "lines": str(folder / "lines.jsonl"), "script": str(folder / "script.py"),
        "book": str(folder / "small.ipynb"),
    }  # fmt: skip


def command(name: str, places: dict[str, str]) -> list[str]:
    """Return the words that start a command."""
    words = [word.format(**places) for word in COMMANDS[name]]
    return [sys.executable, *words] if words[0] == "-m" else [str(ENTRY), *words]


def interrupted(words: list[str], delay_s: float, number: int) -> Ended:
    """Start a command, and send it a signal some time after its first module is there.

    SIGINT goes to all of its processes, as from a terminal; other signals to it alone.
    """
    child = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True, env={**os.environ, "PYTHONPROFILEIMPORTTIME": "1"},
        preexec_fn=take_signals,
    )  # fmt: skip
    begun = threading.Event()
    lines: list[bytes] = []
    out: list[bytes] = []

    def read() -> None:
        for line in child.stderr:
            if MARKER in line:
                begun.set()
            elif not line.startswith(b"import time:"):
                lines.append(line)
        begun.set()

    readers = [threading.Thread(target=read)]
    readers.append(threading.Thread(target=lambda: out.append(child.stdout.read())))
    for reader in readers:
        reader.start()
    begun.wait()
    time.sleep(0.002 + delay_s)  # the line comes just before the handler
    was_running = child.poll() is None
    folders = folders_of(child.pid) if was_running else frozenset()
    if was_running:
        (os.killpg if number == signal.SIGINT else os.kill)(child.pid, number)
    asked = time.perf_counter()
    try:
        child.wait(120)
    except subprocess.TimeoutExpired:
        lines.append(b"Fatal: it goes on\n")
        child.kill()
    seconds = time.perf_counter() - asked
    for reader in readers:
        reader.join(10)
    said = [line.decode(errors="replace").rstrip("\n") for line in lines]
    text = b"".join(out).decode(errors="replace")
    return Ended(child.wait(), text, said, seconds, was_running, folders)


def folders_of(pid: int) -> frozenset[Path]:
    """Return the private folders that a process and those that it started hold.

    A process that sweeps opens the folders of others, too, but it cannot lock them.
    """
    found = set()
    for process in (pid, *descendants(pid)):
        with contextlib.suppress(OSError):
            for handle in Path(f"/proc/{process}/fd").iterdir():
                with contextlib.suppress(OSError):
                    place = handle.readlink()
                    facts = Path(f"/proc/{process}/fdinfo/{handle.name}")
                    if place.name.startswith(PREFIX) and "FLOCK" in facts.read_text():
                        found.add(place)
    return frozenset(found)


def one_case(seed: int, places: dict[str, str], names: list[str]) -> tuple[str, str]:
    """Return what a case was, and what is wrong with how it ended."""
    random_ = random.Random(seed)
    name = random_.choice(names)
    number = random_.choice([signal.SIGINT, signal.SIGINT, signal.SIGTERM])
    delay_s = random_.choice([0.3, 1.0, 4.0]) * random_.random()
    Path(places["new"]).unlink(missing_ok=True)
    ended = interrupted(command(name, places), delay_s, number)
    text = f"{seed}: {name}, {signal.Signals(number).name} after {delay_s:.3f} s"
    problem = ended.problem(number)
    left = [folder for folder in ended.folders if folder.exists()]
    if left and not problem:
        problem = f"left {left}"
    return f"{text}: status {ended.status} in {ended.seconds:.2f} s", problem


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", choices=list(COMMANDS))
    args = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        places = prepared(Path(folder))
        for seed in range(args.seed, args.seed + args.count):
            case, problem = one_case(seed, places, args.only or list(COMMANDS))
            print(case, flush=True)
            if problem:
                failed += 1
                print(f"FAILED {problem}", flush=True)
    print(f"{args.count} cases from seed {args.seed}, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
