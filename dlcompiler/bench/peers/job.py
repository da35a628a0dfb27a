"""Jobs that peers compute, and their offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from dlcompiler import dtypes
from dlcompiler.measurement.aligned import aligned

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Window:
    """The windows of a convolution or pooling: for height and width each."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int, int, int]
    """Top, left, bottom, right."""

    @property
    def borders(self) -> tuple[int, int] | None:
        """The padding of height and width if it is the same on both sides; else None."""
        top, left, bottom, right = self.padding
        return (top, left) if (top, left) == (bottom, right) else None


@dataclass(frozen=True)
class Job:
    """A work with its arrays."""

    family: str
    """A key of `dlcompiler.bench.works.GRAMMAR`."""
    function: str
    """Name of the function, in families that have several."""
    sizes: Mapping[str, Any]
    """The work's sizes and options by name."""
    epilogue: tuple[str, ...]
    """Steps that follow the product or convolution."""
    row: str
    """``plain``: all arrays are known at the call only; ``prepacked``: weights are known before."""
    threads: int
    """Number of threads that may be used."""
    arrays: Mapping[str, Array]
    """Inputs by role: ``data``, ``other``, ``weight``, ``bias``, ``scale``, ``shift``,
    ``residual``, ``condition``, ``indices``; ``data0`` … of a concatenation; of recurrent layers
    the states ``hidden`` and ``cell``, ``weight_ih``, ``weight_hh``, ``bias_ih``, ``bias_hh``."""
    out: tuple[int, ...]
    """Shape of the result."""
    dtype: str = "float32"
    """Dtype of the result."""
    results: int = 1
    """Number of results, all of this shape and dtype."""

    @property
    def given(self) -> str:
        """Dtype of the operands."""
        return str(self.sizes.get("dtype", "float32"))

    @property
    def activation(self) -> str:
        """The last step of the epilogue that is an activation; '' if there is none."""
        steps = [s for s in self.epilogue if s not in ("bias", "batch_norm", "residual")]
        return steps[-1] if steps else ""

    @property
    def known(self) -> tuple[str, ...]:
        """Roles of the inputs whose values are known before the call."""
        return tuple(role for role in self.arrays if self._is_known(role))

    @property
    def groups(self) -> int:
        """Groups of the channels of a convolution."""
        return int(self.sizes["channels" if self.family == "depthwise" else "groups"])

    @property
    def layout(self) -> str:
        """Layout of images, or of matrices."""
        return str(self.sizes.get("layout", "NT" if self.family == "dense" else "NN"))

    @property
    def window(self) -> Window:
        """The windows of a convolution or pooling."""
        kernel, stride, dilation = (_pair(self.sizes[n]) for n in ("kernel", "stride", "dilation"))
        given = self.sizes["padding"]
        sides = tuple(given) if isinstance(given, list | tuple) else (given, given)
        top, left, bottom, right = sides if len(sides) == 4 else (*sides, *sides)
        return Window(kernel, stride, dilation, (top, left, bottom, right))

    @property
    def options(self) -> dict[str, Any]:
        """Options of the function that are given; the others have the function's defaults."""
        names = ("alpha", "beta", "low", "high", "to")
        given = {name: self.sizes.get(name, "default") for name in names}
        return {name: value for name, value in given.items() if value != "default"}

    @property
    def limits(self) -> tuple[float, float]:
        """The two limits of ``clip``."""
        return float(self.options.get("low", 0)), float(self.options.get("high", 6))

    def axes(self, name: str) -> tuple[int, ...]:
        """Return an option that is one dimension, several, ``all`` or ``reversed``."""
        given = self.sizes[name]
        ndim = self.arrays["data"].ndim if "data" in self.arrays else len(self.out)
        if given in ("all", "reversed"):
            return tuple(range(ndim))[:: -1 if given == "reversed" else 1]
        chosen: Sequence[int] = given if isinstance(given, list | tuple) else (given,)
        return tuple(n % ndim for n in chosen)

    def result(self) -> Array:
        """Return an array for the result."""
        return aligned(self.out, dtypes.to_numpy(self.dtype))

    def _is_known(self, role: str) -> bool:
        return self.row == "prepacked" and role not in _GIVEN_LATE


_GIVEN_LATE = ("data", "other", "residual", "hidden", "cell")
"""Roles of the inputs that are known at the call only."""


def _pair(value: Any) -> tuple[int, int]:
    first, second = value if isinstance(value, list | tuple) else (value, value)
    return first, second


@dataclass(frozen=True)
class ModelJob:
    """A whole model from a file, with its inputs."""

    path: str
    """An ONNX file."""
    inputs: Mapping[str, Array]
    """Arrays by the names of the inputs."""
    threads: int
    """Number of threads that may be used."""


@dataclass(frozen=True)
class Offer:
    """A way to compute a job: called again and again, it always writes the same result."""

    way: str
    """How it is computed, such as ``eager`` or ``traced``."""
    call: Callable[[], object]
    """The call that is timed."""
    result: Callable[[], Array | list[Array]]
    """Returns the result of the last call, or a list if the job has several."""
    computes_the_work: bool = True
    """Whether it computes the work; if not, it only moves as much memory."""


class Absent(Exception):  # noqa: N818  not an error: a peer has no function for this job
    """The library cannot compute this job; the text says why."""
