"""What fusion may do beyond the published rule, and the machine that it predicts for."""

from __future__ import annotations

from dataclasses import dataclass

from dlcompiler.errors import GraphError


@dataclass(frozen=True, slots=True)
class FusionOptions:
    """Rules of fusion beyond the published one. All are off by default.

    Each merges kernels that the published rule has made, if fewer bytes are moved and nothing
    spills. Bytes and times are predicted from shapes.
    """

    rows: bool = False
    """Fuse a reduction with what needs its result for the same row: softmax, layer norm."""
    recompute: bool = False
    """Compute a cheap producer again in each kernel that reads it."""
    siblings: bool = False
    """Make kernels with the same input and the same loops one, with several results."""
    max_live: int = 16
    """Most values that an element needs at once: vector registers of AVX2; [1]."""
    max_row_bytes: int = 32 * 1024
    """Most bytes of a row that are used again after a reduction: a first-level cache; [byte]."""
    bytes_per_second: float = 1e10
    """Rate at which a core reads and writes memory; [byte/s]."""
    flops_per_second: float = 5e10
    """Rate of simple operations; [1/s]."""

    def __post_init__(self) -> None:
        for name in ("max_live", "max_row_bytes", "bytes_per_second", "flops_per_second"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not value > 0:
                raise GraphError(
                    "options of fusion", f"{name} is no positive number", got=repr(value)
                )
        for name in ("rows", "recompute", "siblings"):
            if not isinstance(getattr(self, name), bool):
                raise GraphError(
                    "options of fusion", f"{name} is no bool", got=repr(getattr(self, name))
                )

    @property
    def is_classic(self) -> bool:
        """Tell whether only the published rule is followed."""
        return not (self.rows or self.recompute or self.siblings)


CLASSIC = FusionOptions()
