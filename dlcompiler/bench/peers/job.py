"""Jobs that peers compute, and their offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Job:
    """A work with its arrays."""

    family: str
    """A key of `dlcompiler.bench.works.GRAMMAR`."""
    function: str
    """Name of the function, in families that have several."""
    sizes: Mapping[str, int]
    """The work's sizes by name."""
    epilogue: tuple[str, ...]
    """Steps that follow the product or convolution."""
    row: str
    """``plain``: all arrays are known at the call only; ``prepacked``: weights are known before."""
    threads: int
    """Number of threads that may be used."""
    arrays: Mapping[str, Array]
    """Inputs by role: ``data``, ``other``, ``weight``, ``bias``, ``scale``, ``shift``,
    ``residual``."""
    out: tuple[int, ...]
    """Shape of the result."""

    @property
    def activation(self) -> str:
        """The last step of the epilogue that is an activation; '' if there is none."""
        steps = [s for s in self.epilogue if s not in ("bias", "batch_norm", "residual")]
        return steps[-1] if steps else ""

    @property
    def known(self) -> tuple[str, ...]:
        """Roles of the inputs whose values are known before the call."""
        return tuple(role for role in self.arrays if self._is_known(role))

    def _is_known(self, role: str) -> bool:
        return self.row == "prepacked" and role not in ("data", "other", "residual")


@dataclass(frozen=True)
class Offer:
    """A way to compute a job: called again and again, it always writes the same result."""

    way: str
    """How it is computed, such as ``eager`` or ``traced``."""
    call: Callable[[], object]
    """The call that is timed."""
    result: Callable[[], Array]
    """Returns the result of the last call."""
    computes_the_work: bool = True
    """Whether it computes the work; if not, it only moves as much memory."""


class Absent(Exception):  # noqa: N818  not an error: a peer has no function for this job
    """The library cannot compute this job; the text says why."""
