"""How long the kernels of a model take, what they compute, and how long they must take at least."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dlcompiler.analysis import work_of
from dlcompiler.display import Drawn
from dlcompiler.errors import DLCompilerError
from dlcompiler.graph.execution.kernels import ModelKernel
from dlcompiler.graph.execution.steps import Step
from dlcompiler.graph.ir import Op, calls
from dlcompiler.measurement.ceilings import MEMORY, Ceilings
from dlcompiler.runtime.provenance import Provenance
from dlcompiler.runtime.timing import format_seconds
from dlcompiler.target import CacheLevel

_WITHOUT_CEILING = ("int8", "uint8", "int16", "uint16", "float16", "bfloat16", "float64")
"""Dtypes of which a vector holds more or fewer numbers than of float32, whose peak is measured."""


@dataclass(frozen=True, slots=True)
class StepWork:
    """What one call of a kernel computes and moves."""

    operators: tuple[str, ...]
    """Operators of the graph, in the order in which they run."""
    schedule: str
    """The operator of the library that schedules it; "" for a plain schedule."""
    flops: int | None
    """Operations on floats; None if they are not known."""
    weight_bytes: int
    """Size of the constants that it reads; [byte]."""
    other_bytes: int
    """Size of all other arrays that it reads or writes; [byte]."""
    is_float32: bool
    """Whether the peak of float32 holds for its operations."""

    @property
    def bytes(self) -> int:
        """Size of all that it reads or writes; [byte]."""
        return self.weight_bytes + self.other_bytes


def works_of(kernels: Sequence[ModelKernel], steps: Iterable[Step]) -> list[StepWork]:
    """Return what each step of a model computes, in the order in which they run."""
    flops = [_flops(kernel) for kernel in kernels]
    return [_work(kernels[step.kernel], step, flops[step.kernel]) for step in steps]


def _flops(kernel: ModelKernel) -> int | None:
    try:
        found = work_of(kernel.schedule.outputs)
    except DLCompilerError:  # of an expression that the analysis does not know
        return None
    return None if found is None else found.flops


def _work(kernel: ModelKernel, step: Step, flops: int | None) -> StepWork:
    weights = sum(place.bytes for place in step.places if place.kind == "weight")
    others = sum(place.bytes for place in step.places if place.kind != "weight")
    operators = [call.op.name for call in calls(kernel.function.body) if isinstance(call.op, Op)]
    return StepWork(
        tuple(operators), kernel.operator, flops,
        weights + sum(array.nbytes for array in kernel.weights), others,
        not any(param.dtype in _WITHOUT_CEILING for param in kernel.params),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class KernelTime:
    """How long one call of a kernel took."""

    name: str
    """Name of the call in the graph: those of the nodes of the model that are in it."""
    kernel: str
    """Name of its code."""
    seconds: float
    """Shortest of the measured calls, or a prediction; [s]."""
    times: Provenance
    """Whether it was measured or predicted, and on what."""
    work: StepWork | None = None
    """What it computes; None for a model from a file and on a device."""
    bound: str = ""
    """What limits it: the FMA peak, or ``memory``; "" if that is not known."""
    least_s: float | None = None
    """No program with its operations and arrays can be faster; None if not known; [s]."""

    @property
    def of_roofline(self) -> float | None:
        """The least time divided by the measured one; [1]."""
        return None if self.least_s is None else self.least_s / self.seconds

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        found = {"name": self.name, "seconds": self.seconds, "kernel": self.kernel}
        work = self.work
        if work is None:
            return found
        return {
            **found,
            "operators": list(work.operators),
            "schedule": work.schedule or "plain",
            "flops": work.flops,
            "bytes": work.bytes,
            "gflops": None if work.flops is None else work.flops / self.seconds / 1e9,
            "gigabytes_per_second": work.bytes / self.seconds / 1e9,
            "bound_by": self.bound or None,
            "of_roofline": self.of_roofline,
        }


class Profile(tuple[KernelTime, ...], Drawn):
    """The times of the kernels of a model, in the order in which they run.

    A notebook shows it as a picture. `table` and `svg` are the same as text and as a file.
    """

    kind = "profile"

    @property
    def seconds(self) -> float:
        """The time of all kernels; [s]."""
        return sum(each.seconds for each in self)

    def under_roofline(
        self, ceilings: Ceilings, caches: Sequence[CacheLevel], model_bytes: int
    ) -> Profile:
        """Return the same times with the least time of each kernel of floats.

        Parameters
        ----------
        ceilings : Ceilings
            Of this machine, with the same number of threads.
        caches : sequence of CacheLevel
            The caches of this machine, nearest first.
        model_bytes : int
            Size of the weights and of the arena of the model; [byte].

        Notes
        -----
        The operations take at least their number over the FMA peak. The weights of a kernel were
        read in the run before, and all other weights since: they come from the nearest level that
        holds the whole model. All other arrays of a kernel may come from the nearest level that
        holds them.

        **Source:** S. Williams, A. Waterman, D. Patterson, "Roofline", CACM 52(4), 2009.
        """
        rates = dict(ceilings.reads)
        found = []
        for time in self:
            work = time.work
            if work is None or not work.is_float32 or work.flops is None:
                found.append(time)
                continue
            computing = work.flops / (ceilings.peak_gflops * 1e9)
            moving = work.weight_bytes / (rates[_level(model_bytes, caches)] * 1e9)
            moving += work.other_bytes / (rates[_level(work.other_bytes, caches)] * 1e9)
            bound = "FMA peak" if computing > moving else "memory"
            found.append(replace(time, bound=bound, least_s=max(computing, moving)))
        return Profile(found)

    def __repr__(self) -> str:
        return f"Profile({len(self)} kernels, {format_seconds(self.seconds)})"


def _level(size: int, caches: Sequence[CacheLevel]) -> str:
    """Return the name of the nearest level that holds arrays of a size."""
    return next((level.name for level in caches if size <= level.bytes), MEMORY)
