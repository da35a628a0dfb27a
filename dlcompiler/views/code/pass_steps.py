"""The passes of a pipeline as a list: changes, time, and required and established properties.

A pipeline reports the program before and after each pass. This module makes a list of these
reports, and compares the two programs of one pass line by line.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Sequence
from typing import TypedDict

from dlcompiler.ir import PrimFunc, walk
from dlcompiler.passes import Pass
from dlcompiler.pipeline import Change
from dlcompiler.views.code.program import Program, program


class PassStep(TypedDict):
    """One pass, as it ran."""

    number: int
    """Place in the pipeline, from 1."""
    name: str
    about: str
    """What it does, in a line."""
    requires: list[str]
    establishes: list[str]
    milliseconds: float
    """How long it took when it was run; measured [ms]."""
    nodes: int
    """Different statements and expressions of the program behind it; [1]."""
    node_change: int
    """How many more there are than before it; [1]."""
    is_unchanged: bool
    effect: str
    """What it did, in a word or two."""
    label: str
    """The step in words, to be spoken."""


class PassSteps(TypedDict):
    """All passes that lower a state, and the details of one of them."""

    steps: list[PassStep]
    open: int
    """Number of the step that is shown."""
    milliseconds: float
    """All passes together; measured [ms]."""
    how_to_read: str


HOW_TO_READ = (
    "the program after the chosen pass. Lines with + are new, lines with − were there before it. "
    "Times are measured in one run."
)


def pass_steps(changes: Sequence[Change], passes: Sequence[Pass], chosen: str = "") -> PassSteps:
    """Return the steps of a pipeline.

    Parameters
    ----------
    changes
        What an observer saw, in order.
    passes
        The passes, for what they need and give.
    chosen
        Name of the pass to open; by default the first that changed the program.

    Returns
    -------
    PassSteps
        JSON-able.
    """
    known = {item.name: item for item in passes}
    steps = [_step(change, known.get(change.name)) for change in changes]
    open_ = next((step for step in steps if step["name"] == chosen), None)
    first = next((step for step in steps[1:] if not step["is_unchanged"]), steps[0])
    return {
        "steps": steps,
        "open": (open_ or first)["number"],
        "milliseconds": round(sum(change.seconds for change in changes) * 1e3, 2),
        "how_to_read": HOW_TO_READ,
    }


def pass_difference(change: Change) -> Program:
    """Return the program after a pass, compared line by line with the program before it."""
    return program(change.after, change.before)


def _step(change: Change, item: Pass | None) -> PassStep:
    nodes = _nodes(change.after)
    before = nodes if change.is_unchanged or change.before is None else _nodes(change.before)
    node_change = nodes - before
    milliseconds = round(change.seconds * 1e3, 2)
    step: PassStep = {
        "number": change.number,
        "name": change.name,
        "about": _about(item),
        "requires": sorted(item.requires) if item else [],
        "establishes": sorted(item.establishes) if item else [],
        "milliseconds": milliseconds,
        "nodes": nodes,
        "node_change": node_change,
        "is_unchanged": change.is_unchanged,
        "effect": _effect(change, node_change),
        "label": "",
    }
    step["label"] = f"{step['number']} {step['name']}: {step['effect']}, {milliseconds:g} ms"
    return step


def _effect(change: Change, node_change: int) -> str:
    if change.is_unchanged:
        return "changed nothing"
    if change.before is None:
        return "made the program"
    return f"{node_change:+} nodes".replace("-", "−") if node_change else "rewritten"


def _nodes(func: PrimFunc) -> int:
    return sum(1 for _ in walk(func.body))


def _about(item: Pass | None) -> str:
    """Return the first line of the description of a pass."""
    if item is None:
        return "Build the loop nests that the schedule describes."
    function = item.run.func if isinstance(item.run, functools.partial) else item.run
    module = sys.modules[function.__module__]
    return (inspect.getdoc(module) or "").partition("\n")[0]
