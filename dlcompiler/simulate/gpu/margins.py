"""Compute what more or fewer registers and shared memory would do to the occupancy of a kernel."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

from dlcompiler.simulate.gpu.kernel import KernelFacts
from dlcompiler.simulate.gpu.occupancy import Occupancy, occupancy
from dlcompiler.target import Target

KIB = 1024


@dataclass(frozen=True, slots=True)
class Margin:
    """What the occupancy would be with more or less of a resource."""

    resource: str
    """``registers`` or ``shared memory``."""
    used: int
    """Registers of a thread [1], or bytes of a block [byte]."""
    step: int
    """What is added: one register, or a KiB."""
    with_more: int
    """Blocks that would run at once with one step more; [1]."""
    most_same: int
    """Greatest use with as many blocks as now; [1] or [byte]."""
    most_for_more: int | None
    """Greatest use with at least one block more; None: no use allows it; [1] or [byte]."""
    curve: tuple[tuple[int, int], ...]
    """The use from which on a number of blocks runs, with that number, in order."""
    end: int
    """Greatest use that the GPU allows; [1] or [byte]."""


def margins_of(kernel: KernelFacts, target: Target) -> list[Margin]:
    """Return what more registers, or more shared memory, would cost; [] if nothing is known."""
    needs, threads = kernel.needs, kernel.counters.threads

    def by_registers(count: int) -> Occupancy | None:
        return occupancy(target, threads=threads, registers=count, shared_bytes=needs.shared_bytes)

    def by_bytes(size: int) -> Occupancy | None:
        return occupancy(target, threads=threads, registers=needs.registers, shared_bytes=size)

    most_registers = target.limits.get("max_registers_per_thread", 255)
    most_bytes = target.limits.get("max_shared_bytes", 0)
    unit = max(target.limits.get("shared_unit", 1), 1)
    return [
        margin for margin in (
            _margin("registers", needs.registers, 1, by_registers, range(1, most_registers + 1)),
            _margin("shared memory", needs.shared_bytes, KIB, by_bytes,
                    range(0, most_bytes + 1, unit)),
        ) if margin is not None
    ]  # fmt: skip


def _margin(
    name: str, used: int, step: int, of: Callable[[int], Occupancy | None], uses: range
) -> Margin | None:
    found = [(use, each.blocks) for use in uses if (each := of(use)) is not None]
    here, more = of(used), of(used + step)
    if not found or here is None or more is None:
        return None
    curve = [found[0]]
    curve += [b for a, b in itertools.pairwise(found) if a[1] != b[1]]
    same = [use for use, blocks in found if blocks >= here.blocks]
    above = [use for use, blocks in found if blocks > here.blocks]
    return Margin(
        name, used, step, more.blocks, max(max(same, default=used), used),
        max(above, default=None), tuple(curve), uses[-1],
    )  # fmt: skip
