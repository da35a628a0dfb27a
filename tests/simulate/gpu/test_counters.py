"""What warps execute, counted and enumerated."""

from __future__ import annotations

from typing import Any

from dlcompiler.ir import Buffer, For, Var
from dlcompiler.passes.merge_thread_loops import merge_thread_loops
from dlcompiler.pipeline import lower_program
from dlcompiler.simulate.gpu import Given, KernelCounters, count_launch
from dlcompiler.simulate.gpu.populations import astuple
from tests.simulate.gpu.enumeration import Enumeration


def as_numbers(counters: KernelCounters) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return exact counters in the form of an `Enumeration`, without those that are 0."""
    assert counters.is_exact
    kinds = {kind: [low.requests, low.lanes] for kind, (low, _) in counters.instructions.items()}
    accesses = {
        (a.site.buffer, a.site.is_write, a.site.origin, a.site.number, a.bytes): astuple(a.least)
        for a in counters.accesses
    }
    return ({kind: n for kind, n in kinds.items() if any(n)},
            {key: list(n) for key, n in accesses.items() if any(n)})  # fmt: skip
