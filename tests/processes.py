"""The processes of this machine: parents, CPU times, signals, and whether they have ended."""

import os
import signal
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def take_signals():
    """Let SIGINT and SIGHUP end a child, as its ``preexec_fn``.

    A child inherits what its parent ignores: a shell makes jobs in the background ignore SIGINT,
    ``nohup`` makes its program ignore SIGHUP.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def processes():
    """Return of each process that is no zombie its parent and its seconds of work."""
    found = {}
    for place in Path("/proc").iterdir():
        if not place.name.isdecimal():
            continue
        try:
            fields = (place / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            found[int(place.name)] = (int(fields[1]), int(fields[11]) / TICKS)
    return found


def descendants(of):
    """Return the processes that come from one, with their seconds of work."""
    known = processes()
    found, new = {}, {of}
    while new:
        new = {number for number, (parent, _) in known.items() if parent in new}
        found |= {number: known[number][1] for number in new}
    return found


def has_ended(process):
    """Tell whether a process has ended; one that nobody has waited for yet has, too."""
    try:
        state = Path(f"/proc/{process}/stat").read_text("utf-8", "replace").rpartition(")")[2]
    except OSError:  # also where it ends while its file is read
        return True
    return state.split()[0] in "ZX"


def ends(process, within_s=60):
    """Wait until a process has ended; tell whether it did.

    The limit is for tests: no process of ours runs that long by itself.
    """
    end = time.monotonic() + within_s
    while not has_ended(process) and time.monotonic() < end:
        time.sleep(0.01)
    return has_ended(process)
