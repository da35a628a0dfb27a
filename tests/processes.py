"""The processes of this machine: their parents and their CPU times."""

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


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
