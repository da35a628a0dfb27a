"""Two protocols: a device that loads and runs programs, and a program that is loaded.

A device kind is added by implementing `Device` and entering it in `pipeline.DEVICES`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dlcompiler import dtypes
from dlcompiler.runtime.device_array import DeviceArray
from dlcompiler.runtime.provenance import Provenance
from dlcompiler.runtime.source import Source
from dlcompiler.target import Target

Array = npt.NDArray[Any]


class Executable(Protocol):
    """A loaded program, which can be called."""

    @property
    def name(self) -> str:
        """Name of the program."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Names of the program's texts, the generated one first."""

    def source(self, name: str | None = None) -> str:
        """Return one of the program's texts; without a name, the generated one.

        Raises
        ------
        UserError
            There is no such text.
        """

    def __call__(self, *arguments: Any) -> None:
        """Run on arrays and numbers; outputs come last and are written."""


class Device(Protocol):
    """A machine, here or simulated, that loads generated code and runs it."""

    def why_unavailable(self) -> str | None:
        """Return the reason why the device cannot be used here; None if it can."""

    def allocate(self, shape: Sequence[int], dtype: str) -> Array | DeviceArray:
        """Return an array in its memory; its elements are undefined."""

    def copy(self, source: Any, destination: Any) -> None:
        """Copy an array to another of the same shape and dtype, from or to the host, or within."""

    def load(self, source: Source, target: Target) -> Executable:
        """Load generated code, and return an executable.

        Raises
        ------
        TargetError
            The code is not for this device.
        """

    def launch(self, executable: Executable, arguments: Sequence[Any]) -> None:
        """Start a program on arrays and numbers; it may still run when this returns."""

    def synchronise(self) -> None:
        """Wait until all started programs have ended."""

    def times(self, target: Target) -> Provenance | None:
        """Return the provenance of a program's times; None if the device has no times."""


class HostMemory:
    """The common part of all devices with NumPy arrays and synchronous calls."""

    def why_unavailable(self) -> str | None:
        """Return None: this process is always available."""
        return None

    def allocate(self, shape: Sequence[int], dtype: str) -> Array:
        """Return an array of this process; its elements are undefined."""
        return np.empty(tuple(shape), dtypes.to_numpy(dtype))

    def copy(self, source: Array, destination: Array) -> None:
        """Copy an array to another of the same shape and dtype."""
        np.copyto(destination, source, casting="no")

    def launch(self, executable: Executable, arguments: Sequence[Any]) -> None:
        """Run a program to its end."""
        executable(*arguments)

    def synchronise(self) -> None:
        """Return at once: a call has ended when it returns."""

    def times(self, target: Target) -> Provenance | None:
        """Return None: how long a call takes here says nothing about a machine."""
        return None
