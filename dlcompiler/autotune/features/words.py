"""The names of features in words, for people who look at what a cost model decides by.

A column of a feature matrix is named by a stage, a part of its statement and a key, such as
``C.read0.beyond L1``. That name identifies it in records and models. `words_of` makes of it what a
picture shows: ``C, 1st array read: bytes loaded into L1``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dlcompiler.autotune.features.itervar import ANNOTATIONS

PROGRAM: Mapping[str, str] = {
    "compute cycles": "cycles of arithmetic",
    "L2 cycles": "cycles of reading from L2",
    "L3 cycles": "cycles of reading from L3",
    "memory cycles": "cycles of reading from memory",
    "roofline cycles": "cycles of the tightest limit of each stage, summed",
}
"""Features of the whole program."""
STAGE: Mapping[str, str] = {
    "iterations": "iterations in all",
    "started": "how often the stage is started",
    "computed over stored": "elements computed for each element of the result",
    "reduction": "iterations of the reduction",
    "parallel": "iterations that may run in parallel",
    "lanes": "vector lanes in use",
    "unrolled": "copies of the unrolled body",
    "inner loop": "iterations of the innermost loop",
    "accumulators": "sums that are computed at a time",
    "operations": "operations",
    "special functions": "calls of functions such as exp",
    "code": "size of the unrolled code",
    "buffer bytes": "bytes of its buffer",
    "imbalance": "how unevenly the cores are used",
    "executed over needed": "iterations executed for each one needed",
    "register pressure": "registers needed, as a part of those there are",
}
"""Features of a stage's statement."""
ACCESS: Mapping[str, str] = {
    "step": "distance between accesses of the innermost loop",
    "bytes": "bytes touched",
    "reuse": "uses of each element",
    "reuse distance": "bytes touched between two uses",
    "reuse count": "number of repeated uses",
    "loads": "load instructions",
    "beyond L1": "bytes loaded into L1",
    "beyond L2": "bytes loaded into L2",
    "beyond L3": "bytes loaded into L3",
    "stride": "distance between two iterations",
    "mod": "indices that the loop covers",
    "count": "elements touched in the loop",
    "T_count": "elements touched in the loops inside",
    "T_reuse": "uses of each element in the loops inside",
}
"""Features of an array that a statement reads or writes, of the statement or of one loop."""
LOOP: Mapping[str, str] = {
    "length": "iterations",
    "level": "depth in the nest",
    "topdown": "iterations of it and of the loops around it",
    "bottomup": "iterations of it and of the loops inside it",
    "add": "additions in the statement",
    "mul": "multiplications in the statement",
    "div": "divisions in the statement",
    **{kind: f"whether it is {kind}" for kind in ANNOTATIONS},
}
"""Features of a loop."""

_ANALYTIC = "roofline: "
"""The prefix of columns that a learned model takes from the analytic one."""
_SLOT = r"(?P<slot>write|read\d+)"
_ORDINALS = {1: "1st", 2: "2nd", 3: "3rd"}
_CURVE = re.compile(rf"(?P<stage>.+)\.{_SLOT}\.count at (?P<along>reuse|topdown) (?P<most>\d+)")
_AT_LOOP = re.compile(rf"(?P<stage>.+)\.loop(?P<depth>\d+)\.(?:{_SLOT}\.)?(?P<key>.+)")
_AT_ACCESS = re.compile(rf"(?P<stage>.+)\.{_SLOT}\.(?P<key>.+)")


def words_of(column: str) -> str:
    """Return the name of a feature in words; the name itself if it is of no known feature.

    A knob, which is a feature of some models, keeps its name.

    Examples
    --------
    >>> words_of("C.read0.beyond L1")
    'C, 1st array read: bytes loaded into L1'
    >>> words_of("program.roofline cycles"), words_of("tile_m")
    ('program: cycles of the tightest limit of each stage, summed', 'tile_m')
    >>> words_of("roofline: program.compute cycles")
    'roofline, program: cycles of arithmetic'
    """
    if column.startswith(_ANALYTIC):
        return f"roofline, {words_of(column.removeprefix(_ANALYTIC))}"
    head, _, key = column.rpartition(".")
    if head == "program" and key in PROGRAM:
        return f"program: {PROGRAM[key]}"
    if match := _CURVE.fullmatch(column):
        along = {"reuse": "uses of each element", "topdown": "iterations of it and around it"}
        return (
            f"{match['stage']}, {_array(match['slot'])}: most elements touched in a loop with at "
            f"most {match['most']} {along[match['along']]}"
        )
    if match := _AT_LOOP.fullmatch(column):
        return _at_loop(match) or column
    if (match := _AT_ACCESS.fullmatch(column)) and match["key"] in ACCESS:
        return f"{match['stage']}, {_array(match['slot'])}: {ACCESS[match['key']]}"
    return f"{head}: {STAGE[key]}" if head and key in STAGE else column


def _at_loop(match: re.Match[str]) -> str:
    """Return the words for a feature of a loop; '' if there are none."""
    loop = f"{match['stage']}, loop {int(match['depth']) + 1} from outside"
    if match["slot"] is None:
        return f"{loop}: {LOOP[match['key']]}" if match["key"] in LOOP else ""
    known = match["key"] in ACCESS
    return f"{loop}, {_array(match['slot'])}: {ACCESS[match['key']]}" if known else ""


def _array(slot: str) -> str:
    """Return a part of a statement in words: ``write`` is its result."""
    if slot == "write":
        return "its result"
    number = int(slot.removeprefix("read")) + 1
    return f"{_ORDINALS.get(number, f'{number}th')} array read"
