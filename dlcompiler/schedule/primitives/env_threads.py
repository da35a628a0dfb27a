"""Run all steps of a scan in one launch: its loop over time is inside the thread loops.

*Before*, then *after* ``env_threads([te.thread_axis((0, 4), "blockIdx.x"),
te.thread_axis((0, 32), "threadIdx.x")])``, where loops of the update are bound to the two axes::

    for t in range(99):                    for bx in blockIdx.x(4):
        for i.outer in blockIdx.x(4):          for tx in threadIdx.x(32):
            for i.inner in threadIdx.x(32):        for t in range(99):
                S[t + 1, …] = …                        S[t + 1, …] = …
                                                       barrier

With one launch for each step, a launch waits for all threads of the launch before, whose shared and
local memory is lost. In one launch, the threads of a block synchronise after each step and keep
values that all steps need: stages attached at the thread loops are computed once, before the first
step. Blocks cannot synchronise in a launch. So the step is legal only if each block reads only
elements that it computed itself (`schedule.inference.scan_blocks`).
In TVM ``env_threads``; Halide has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

from dlcompiler.ir import THREADS, Axis, ThreadTag, is_in_block, is_thread
from dlcompiler.ir.names import unique_name
from dlcompiler.schedule.primitives.base import Primitive, StepContext
from dlcompiler.schedule.state import Launched, StageState, State, is_scan
from dlcompiler.schedule.verdict import LEGAL, Illegal, Refused, Verdict, answering
from dlcompiler.te import ThreadAxis

_AXIS = re.compile(r"([a-zA-Z]+(?:\.[xyz])?)=(\d{1,9})")
EXAMPLE = "blockIdx.x=4 threadIdx.x=32"


@answering
def check(state: State, stage: StageState, *, threads: Any) -> Verdict:
    """Refuse stages that are not scans, and invalid thread axes."""
    if not is_scan(stage):
        raise Refused(
            Illegal(
                "structural",
                f"{stage.name} is no scan",
                hint=f"bind the loops of {stage.name} themselves",
                conflicts=(stage.name,),
            )
        )
    there = [leaf for leaf in stage.leaves if is_thread(stage.kind(leaf))]
    if there:
        raise Refused(
            Illegal(
                "structural",
                f"the steps of {stage.name} run on threads already",
                got=", ".join(f"{stage.kind(leaf)}, {leaf.extent}" for leaf in there),
                hint="undo that step, and give all thread axes at once",
                conflicts=tuple(stage.key(leaf) for leaf in there),
            )
        )
    tags = [tag for tag, _ in axes_of(threads)]
    for tag in tags:
        if tag == "vthread" or tags.count(tag) > 1:
            raise Refused(_wrong("a launch has each axis of its blocks and threads once", threads))
    if [*map(is_in_block, tags)] != sorted(map(is_in_block, tags)):
        raise Refused(_wrong("blocks would be inside the threads of a block", threads))
    return LEGAL


def _wrong(reason: str, threads: Any) -> Illegal:
    hint = f'give blocks first, then threads, each with its number: "{EXAMPLE}"'
    return Illegal("structural", reason, got=repr(threads), hint=hint)


def axes_of(threads: Any) -> list[tuple[ThreadTag, int]]:
    """Return the thread axes in a text, each with its number of threads or blocks."""
    found = [_AXIS.fullmatch(part) for part in str(threads).split()]
    pairs = [(match[1], int(match[2])) for match in found if match]
    if not pairs or len(pairs) < len(found) or not all(t in THREADS and n for t, n in pairs):
        raise Refused(_wrong("these are no thread axes with their numbers", threads))
    return [(cast(ThreadTag, tag), count) for tag, count in pairs]


def text_of(threads: ThreadAxis | str | Iterable[ThreadAxis | str]) -> str:
    """Return thread axes as the text in a step: ``"blockIdx.x=4 threadIdx.x=32"``."""
    if isinstance(threads, str) or not isinstance(threads, Iterable):
        threads = [threads]
    return " ".join(
        f"{axis.tag}={axis.extent}" if isinstance(axis, ThreadAxis) else str(axis)
        for axis in threads
    )


def apply(
    state: State, stage: StageState, context: StepContext, *, threads: str
) -> tuple[State, tuple[Axis, ...]]:
    """Return the next state and the loops that are bound to the thread axes."""
    paths = dict(stage.paths)
    kinds = dict(stage.kinds)
    axes = []
    for tag, count in axes_of(threads):
        name = unique_name(f"{tag[0]}{tag[-1]}", paths.values())
        axis = context.axis(name, count, "data")
        paths[axis], kinds[axis] = name, tag
        axes.append(axis)
    relations = (*stage.relations, *map(Launched, axes))
    leaves = (*axes, *stage.leaves)
    stage = replace(stage, leaves=leaves, relations=relations, paths=paths, kinds=kinds)
    return state.with_stage(stage, context.state_id), tuple(axes)


ENV_THREADS = Primitive("env_threads", {"threads": "text"}, check, apply)
