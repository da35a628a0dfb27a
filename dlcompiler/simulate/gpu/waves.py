"""Spread the blocks of a launch over the multiprocessors: full waves and the tail."""

from __future__ import annotations

from dataclasses import dataclass

from dlcompiler.simulate.gpu.kernel import KernelFacts
from dlcompiler.target import Target


@dataclass(frozen=True, slots=True)
class Waves:
    """How the blocks of a launch are spread over the multiprocessors."""

    blocks: int
    """Blocks of the launch; [1]."""
    processors: int
    """Multiprocessors of the GPU; [1]."""
    resident: int
    """Blocks that one of them runs at once; [1]."""

    @property
    def places(self) -> int:
        """Blocks that run at once on the whole GPU; [1]."""
        return self.processors * self.resident

    @property
    def full(self) -> int:
        """Waves in which each place has a block; [1]."""
        return self.blocks // self.places

    @property
    def tail(self) -> int:
        """Blocks of the last wave, if it does not fill all places; [1]."""
        return self.blocks % self.places

    @property
    def count(self) -> int:
        """Waves in all; [1]."""
        return self.full + (self.tail > 0)

    @property
    def used(self) -> float:
        """Places that have a block, of those of all waves; [1]."""
        return self.blocks / (self.count * self.places) if self.count else 0.0

    @property
    def busy(self) -> int:
        """Multiprocessors that have a block in the last wave; [1]."""
        return min(self.tail, self.processors) if self.tail else self.processors


def waves_of(kernel: KernelFacts, target: Target) -> Waves | None:
    """Return how a kernel's blocks are spread; None if the occupancy is not known, or is 0."""
    if kernel.occupancy is None or not kernel.occupancy.blocks:
        return None
    return Waves(kernel.blocks, target.cores, kernel.occupancy.blocks)
