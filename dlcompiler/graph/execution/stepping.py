"""Run a model one step after another, from Python: to look between the kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from dlcompiler import dtypes
from dlcompiler.graph.execution.spaces import HostSpace
from dlcompiler.graph.execution.steps import Place, Step
from dlcompiler.graph.operators.base import Array
from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.function import Function


class Run(Protocol):
    """A run of a model that stops after each step."""

    outputs: Sequence[Array]
    """The arrays of the results."""

    def steps(self) -> Iterator[tuple[Step, list[Array]]]:
        """Run step by step; yield each one with what it stored."""


@dataclass(frozen=True, slots=True)
class KernelCode:
    """A kernel of a model, loaded into this process."""

    function: Function
    """The kernel: inputs, then `weights`, then outputs."""
    weights: tuple[Array, ...]
    """Arrays that stand inside the kernel."""


@dataclass(frozen=True, slots=True)
class StepCode:
    """A step with the code that runs it."""

    step: Step
    function: Function
    inside: tuple[Array, ...]
    """Arrays that the kernel takes between inputs and outputs."""


@dataclass(slots=True)
class SteppedRun:
    """A run of a model, with an arena of its own."""

    codes: Sequence[StepCode]
    inputs: Sequence[Array]
    outputs: Sequence[Array]
    weights: Sequence[Array]
    arena_bytes: int
    calls: list[tuple[StepCode, list[Array], list[int]]] = field(init=False)
    """Each step with its arrays and their addresses: inputs, what stands inside, outputs."""

    def __post_init__(self) -> None:
        arena = HostSpace().allocate(self.arena_bytes)
        given = {
            "input": self.inputs, "output": self.outputs, "weight": self.weights, "arena": [arena],
        }  # fmt: skip
        # Addresses are found now: finding one takes as long as a small kernel, and runs are timed.
        self.calls = [
            (code, arrays, [array.ctypes.data for array in arrays])
            for code, arrays in ((code, _arrays(code, given)) for code in self.codes)
        ]

    def steps(self) -> Iterator[tuple[Step, list[Array]]]:
        """Run step by step; yield each one with what it stored, as views into the arena.

        Raises
        ------
        ProgramError, OutOfMemory
            As of a call of the kernel.
        """
        for code, arrays, addresses in self.calls:
            code.function.run_unchecked(addresses.copy())
            yield code.step, arrays[len(arrays) - code.step.outputs :]


def _arrays(code: StepCode, given: Mapping[str, Sequence[Array]]) -> list[Array]:
    places = code.step.places
    inputs = len(places) - code.step.outputs
    params = code.function.params
    found = [_view(place, given) for place in places[:inputs]]
    found += code.inside
    found += [_view(place, given) for place in places[inputs:]]
    return [_as(array, param) for array, param in zip(found, params, strict=True)]


def _view(place: Place, given: Mapping[str, Sequence[Array]]) -> Array:
    if place.kind == "arena":
        return given["arena"][0][place.number : place.number + place.bytes]
    return given[place.kind][place.number]


def _as(array: Array, param: Param) -> Array:
    """Return the elements of an array with the dtype and the shape that a kernel takes."""
    raw = array.reshape(-1).view(np.uint8) if array.size else np.empty(0, np.uint8)
    return raw.view(dtypes.to_numpy(param.dtype)).reshape(param.static_shape)
