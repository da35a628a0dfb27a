"""What the pictures of a warp's accesses have in common: a strip of lanes, captions, positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TypeAlias, TypeVar

from dlcompiler.simulate.gpu import AccessCounters
from dlcompiler.simulate.gpu.kernel import KernelFacts
from dlcompiler.simulate.gpu.requests import Request
from dlcompiler.views.loops.line_keys import loop_key
from dlcompiler.views.memory.scene import Flow
from dlcompiler.views.render.scene import Mark, Parts, beside

WIDTH, LEFT = 364.0, 6.0
INNER = WIDTH - 2 * LEFT
STRIP, FAN, LINE, GAP = 10.0, 24.0, 17.0, 12.0
MOST_DRAWN = 6
"""Accesses that are drawn; the table has all of them."""

Item = TypeVar("Item")
Access: TypeAlias = "tuple[str, Request, AccessCounters]"
"""Its name, what the lanes of one warp touch, and the counts of all warps."""


def launch_text(kernel: KernelFacts, machine: str) -> str:
    """Return which kernel a picture is about, and where its numbers come from."""
    counters = kernel.counters
    threads = f"{counters.threads:,} thread{'s' * (counters.threads != 1)}"
    blocks = f"{counters.blocks:,} block{'s' * (counters.blocks != 1)}"
    return f"Simulated on {machine}: {counters.name}, {blocks} of {threads}"


def keys_of_site(request: Request) -> list[str]:
    """Return the keys, as in the loop tree, of the stages and loops that an access comes from."""
    keys = []
    for step in request.site.origin:
        keys.append(loop_key(step.stage))
        if step.axis and not step.axis.startswith("("):
            keys.append(loop_key(step.stage, step.axis))
    return list(dict.fromkeys(keys))


def names_of(requests: Sequence[Request]) -> list[str]:
    """Return the accesses as text; those of one name are numbered."""
    names = [request.name for request in requests]
    return [
        name if names.count(name) == 1 else f"{name}, {names[: n + 1].count(name)}"
        for n, name in enumerate(names)
    ]


def accesses_of(kernel: KernelFacts, space: str) -> list[Access]:
    """Return the accesses to one memory, in the order of the program."""
    requests = [request for request in kernel.requests if request.space == space]
    counters = [access for access in kernel.counters.accesses if access.space == space]
    return list(zip(names_of(requests), requests, counters, strict=True))


def to_draw(accesses: Sequence[Access], cost: Callable[[AccessCounters], int]) -> list[Access]:
    """Return the accesses that cost most, in the order of the program."""
    known = [access for access in accesses if access[1].addresses]
    kept = sorted(known, key=lambda access: -cost(access[2]))[:MOST_DRAWN]
    return [access for access in known if access in kept]


def whose(request: Request) -> str:
    """Return which request a drawing shows: its warp, and its block and iteration."""
    at = ", ".join(f"{name} = {n}" for name, n in request.at)
    return f"warp {request.warp}" + (f" at {at}" if at else "")


def lane_at(n: int, lanes: int) -> float:
    """Return the position of the middle of a lane in the strip; [px]."""
    return LEFT + INNER * (n + 0.5) / lanes


def draw_lanes(
    request: Request, colors: Sequence[str], keys: list[str], y: float, marks: list[Mark]
) -> None:
    """Draw the strip of lanes; neighbours of one colour are one mark.

    Parameters
    ----------
    request
        What the lanes touch.
    colors
        The colour of each lane; '' for one that does not take part.
    keys
        Keys of the marks.
    y
        Upper edge. [px]
    marks
        The marks are added to them.
    """
    lanes = len(colors)
    width = INNER / lanes
    marks.append({"shape": "rect", "role": "axis", "x": LEFT, "y": y, "w": INNER, "h": STRIP,
                  "title": "the lanes of the warp, from 0 on", "keys": keys})  # fmt: skip
    for color, group in groupby(range(lanes), key=lambda n: colors[n]):
        run = list(group)
        if not color:
            continue
        first, last = run[0], run[-1]
        text = f"lane {first}" if first == last else f"lanes {first} to {last}"
        begin = request.addresses[first]
        marks.append({
            "shape": "rect", "role": "cell", "x": round(LEFT + first * width, 1), "y": y,
            "w": round(len(run) * width, 1), "h": STRIP, "fill": color, "keys": keys,
            "title": f"{text}: from byte {begin:,} on",
        })  # fmt: skip
    inner = "".join(f"M{LEFT + n * width:.1f} {y}v{STRIP:g}" for n in range(1, lanes))
    if inner:
        marks.append({"shape": "path", "role": "grid", "d": inner})


def draw_fan(request: Request, to: Callable[[int], float], y: float, marks: list[Mark]) -> None:
    """Draw a line from each lane that takes part down to a position.

    Parameters
    ----------
    request
        What the lanes touch.
    to
        The position for the number of a lane. [px]
    y
        Upper edge. [px]
    marks
        The path is added to them.
    """
    lanes = len(request.addresses)
    lines = "".join(
        f"M{lane_at(n, lanes):.1f} {y}L{to(n):.1f} {y + FAN}"
        for n, address in enumerate(request.addresses) if address is not None
    )  # fmt: skip
    if lines:
        marks.append({"shape": "path", "role": "axis", "d": lines})


def caption(name: str, texts: Sequence[str], keys: list[str], y: float, marks: list[Mark]) -> float:
    """Draw the name of an access and its numbers; return where they end [px]."""
    flow = Flow(marks, LEFT, y)
    flow.text(name, "name", keys)
    for n, text in enumerate(texts):
        flow.text(text, "soft" if n else "label", keys)
    return flow.y + LINE + 3


def arranged(items: Sequence[Item], draw: Callable[[Item, float, list[Mark]], float]) -> Parts:
    """Draw items below each other, in two columns if there are more than two.

    Parameters
    ----------
    items
        What to draw.
    draw
        Draws an item at a height, and returns where it ends. [px]
    """
    half = len(items) if len(items) < 3 else (len(items) + 1) // 2
    columns: list[tuple[float, float, list[Mark]]] = []
    for column in (items[:half], items[half:]):
        y = 2.0
        marks: list[Mark] = []
        for item in column:
            y = draw(item, y, marks) + GAP
        if column or not columns:
            columns.append((WIDTH, y, marks))
    return beside(*columns)
