"""Find the dependences that loops carry: kind, accesses and distance.

A loop carries a dependence when two of its iterations touch the same element and one of them
writes it, in the same iteration of the outer loops. It is a *flow* dependence when the earlier
iteration writes and the later reads, *anti* when it reads first, *output* when both write.
Dependences are between memory accesses, not values: a third write between the two does not remove
the dependence. Buffers that are allocated inside the loop belong to one iteration.

**Source:** R. Allen and K. Kennedy, *Optimizing Compilers for Modern Architectures*, 2001, sections
2.2 and 2.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dlcompiler.analysis.accesses import Access, Loop, collect_accesses
from dlcompiler.analysis.dependence_systems import Doubt, Witness, find_dependence
from dlcompiler.analysis.injectivity import is_injective
from dlcompiler.arith import Analyzer
from dlcompiler.ir import Buffer, PrimFunc, structural_key

DependenceKind: TypeAlias = Literal["flow", "anti", "output"]
MAX_PAIRS = 2000


@dataclass(frozen=True, slots=True)
class Dependence:
    """A dependence: two accesses whose iterations must keep their order."""

    kind: DependenceKind
    loop: Loop
    source: Access
    """The access in the earlier iteration."""
    sink: Access
    distance: int | None
    """Iterations from the source to the sink, where it is always the same; [1]."""
    witness: Witness | None
    """Two points that touch one element; None where the dependence could not be excluded."""
    doubt: str = ""

    @property
    def buffer(self) -> Buffer:
        """The buffer that both accesses touch."""
        return self.source.buffer

    def __str__(self) -> str:
        distance = "<" if self.distance is None else str(self.distance)
        text = f"{self.kind} {self.buffer.name}, loop {self.loop.var.name}, distance {distance}"
        return text if self.witness else f"{text}, perhaps: {self.doubt}"


def dependences(func: PrimFunc) -> tuple[Dependence, ...]:
    """Return the dependences that the loops of a function carry, whatever the loops' kind.

    Parameters
    ----------
    func
        A lowered function.

    Returns
    -------
    tuple of Dependence
        For each loop, outermost first: one for each kind and pair of accesses.
    """
    accesses = collect_accesses(func)
    return tuple(
        dependence
        for loop in accesses.loops
        if loop.kind != "lanes"
        for group in accesses.shared_in(loop).values()
        for dependence in carried(loop, group, accesses.analyzer, with_distance=True)
    )


def carried(
    loop: Loop, group: Sequence[Access], analyzer: Analyzer, *, with_distance: bool = False
) -> Iterator[Dependence]:
    """Yield the dependences that a loop carries among accesses to one buffer.

    Parameters
    ----------
    loop
        The loop; it encloses all of `group`.
    group
        Accesses to one buffer that the iterations of the loop share.
    analyzer
        Holds the range of each variable.
    with_distance
        Also find out whether the distance is always the same.
    """
    if loop.size is not None and loop.size < 2:
        return
    if not any(access.is_write for access in group):
        return
    if is_injective(loop, group, analyzer):
        return
    distinct = _distinct(group, keep_reads=with_distance)
    pairs = [(a, b) for a in distinct for b in distinct if a.is_write or b.is_write]
    for source, sink in pairs[:MAX_PAIRS]:
        found = find_dependence(loop, source, sink, analyzer, with_distance=with_distance)
        if found is None:
            continue
        kind: DependenceKind = (
            "anti" if not source.is_write else "output" if sink.is_write else "flow"
        )
        if isinstance(found, Doubt):
            yield Dependence(kind, loop, source, sink, None, None, found.reason)
        else:
            yield Dependence(kind, loop, source, sink, found.distance, found)
    if len(pairs) > MAX_PAIRS:
        reason = f"there are {len(pairs)} pairs of accesses"
        yield Dependence("output", loop, distinct[0], distinct[0], None, None, reason)


def _distinct(group: Sequence[Access], *, keep_reads: bool) -> list[Access]:
    """Keep one of the accesses with equal loops, indices and epoch, a write if possible."""
    kept: dict[object, Access] = {}
    for access in sorted(group, key=lambda access: not access.is_write):
        place = (
            keep_reads and access.is_write,
            tuple(id(loop) for loop in access.loops),
            tuple(structural_key(index) for index in access.indices),
            tuple(structural_key(condition) for condition in access.conditions),
            None if access.epoch is None else structural_key(access.epoch),
        )
        kept.setdefault(place, access)
    return list(kept.values())
