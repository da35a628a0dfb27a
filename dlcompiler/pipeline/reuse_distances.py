"""Record the accesses of a program at the speed of machine code, for its reuse distances.

The program is the one that `dlcompiler.pipeline.cache_simulation` runs; instead of looking for each
line in caches, it writes the addresses down.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dlcompiler.errors import CallError, TargetError
from dlcompiler.ir import PrimFunc
from dlcompiler.pipeline.cache_simulation import run_traced
from dlcompiler.simulate.cache.distances import ReuseDistances, stack_distances
from dlcompiler.simulate.cache.inputs import inputs_of
from dlcompiler.simulate.cache.model import ADDRESS_BITS, HEADER
from dlcompiler.simulate.cache.sampling import count_accesses, sampled
from dlcompiler.simulate.cache.tracing import check_traceable, traced
from dlcompiler.target import Target

MOST_TRACED = 400_000
"""Accesses that are traced by default, in about half a second; [1]."""
# The first word of the state counts the words that are in use.
_RECORDER = """
define internal void @dlc_extern.cache_access(ptr %state, i64, i64 %address, i64) nounwind {
entry:
  %used = load i64, ptr %state, align 8
  %at = getelementptr i64, ptr %state, i64 %used
  store i64 %address, ptr %at, align 8
  %more = add i64 %used, 1
  store i64 %more, ptr %state, align 8
  ret void
}
"""


def reuse_distances(
    func: PrimFunc,
    target: Target,
    most_accesses: int = MOST_TRACED,
    inputs: Mapping[str, object] | None = None,
) -> ReuseDistances:
    """Return the reuse distances of a program's accesses, in lines of the first cache of a target.

    Parameters
    ----------
    func
        What ``lower(s, args, simple_mode=True)`` returns.
    target
        A CPU.
    most_accesses
        Largest number of traced accesses; of a longer program, only the first iterations of its
        outer loops are traced. [1]
    inputs
        As of `dlcompiler.pipeline.simulate_cache`.

    Raises
    ------
    CallError
        As of `dlcompiler.pipeline.simulate_cache`.
    TargetError
        If the target has no caches.
    """
    if not target.caches:
        raise TargetError(
            f"find the reuse distances of {func.name}", "the target has no caches", got=target.name
        )
    check_traceable(func)
    given = inputs_of(func, inputs or {})
    cut, samples = sampled(func, most_accesses, given)
    accesses = count_accesses(cut, given)
    program = traced(cut, target.caches, max(accesses, 1), given)
    state = np.zeros(HEADER + accesses, np.int64)
    state[0] = HEADER
    if accesses:
        run_traced(program, state, given, _RECORDER)
    if state[0] > len(state):  # a statement is never cut: its accesses are counted as a whole
        raise CallError(f"find the reuse distances of {func.name}", "it makes too many accesses")
    addresses = state[HEADER : int(state[0])]
    line_bytes = target.caches[0].line
    numbers = addresses >> ADDRESS_BITS
    distances = stack_distances(addresses // line_bytes)
    places = {buffer: place.number for buffer, place in program.placements.items()}
    used = {site.buffer for site in program.sites}
    return ReuseDistances(
        target,
        line_bytes,
        {buffer: distances[numbers == n] for buffer, n in places.items() if buffer in used},
        samples,
        count_accesses(func, given) if samples else len(addresses),
    )
