"""Kernels in a worker process, which compiles them from text, runs and times them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy.typing as npt

from dlcompiler.codegen import Source
from dlcompiler.errors import MeasurementError
from dlcompiler.measurement.inputs import valid_indices
from dlcompiler.measurement.loading import described
from dlcompiler.measurement.provenance import check_measured
from dlcompiler.pipeline import Built, Kernel
from dlcompiler.pipeline.lower import Argument
from dlcompiler.runtime.externs import calls_outside
from dlcompiler.runtime.provenance import Provenance
from dlcompiler.runtime.timing import Paired, Timing, measured_here
from dlcompiler.runtime.workers import Outcome, Worker
from dlcompiler.target import Target

Array = npt.NDArray[Any]
LOAD_LIMIT_S = 60.0


def _timing(value: Mapping[str, Any], on: Provenance, flops: float | None = None) -> Timing:
    return Timing(tuple(value["samples_s"]), flops, value["batch"], on)


@cache
def shared_worker() -> Worker:
    """Return the worker process that all calls of this process share."""
    return Worker()


class RemoteKernel:
    """A kernel that runs in a worker; it is compiled there, from LLVM text.

    Parameters
    ----------
    source : Source
        The generated code.
    target : Target
        The target that it was generated for.
    threads : int, optional
        Number of threads of its parallel loops; by default, the cores allowed.
    worker : Worker, optional
        By default, the worker of this process.
    args : sequence of Tensor and Var
        The tensors and symbols of the parameters. With them, `time` and `pair` draw valid values
        for arrays that are used as indices; without them, all arrays are random.
    """

    def __init__(
        self,
        source: Source,
        target: Target,
        *,
        threads: int | None = None,
        worker: Worker | None = None,
        args: Sequence[Argument] = (),
    ) -> None:
        self.args = tuple(args)
        self.source = source
        self.params = source.interface.params
        self.target = target
        self.threads = threads
        self.worker = worker or shared_worker()
        self._loaded: tuple[int, int] | None = None
        """Process generation and handle."""

    @staticmethod
    def of(
        kernel: Built,
        *,
        threads: int | None = None,
        worker: Worker | None = None,
    ) -> RemoteKernel:
        """Convert a kernel of this process to one that runs in a worker.

        Raises
        ------
        MeasurementError
            If it is simulated or never runs, so that it has no times.
        """
        if not isinstance(kernel, Kernel):
            raise MeasurementError(
                f"measure {kernel.name}",
                "only machine code has times",
                got=repr(kernel),
                hint="call it to see that it is right: kernel(a, b, c); "
                "kernel.report() says what is simulated",
            )
        return RemoteKernel(
            kernel.generated, kernel.target, threads=threads, worker=worker, args=kernel.args
        )

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return self.source.symbol

    def load(self) -> Outcome | None:
        """Load the kernel in the worker, unless it is loaded; return the outcome if this fails."""
        if self._loaded is not None and self._loaded[0] == self.worker.generation:
            return None
        if calls_outside(self.source.text):
            raise MeasurementError(
                f"run {self.name} in a worker process", "it calls code from outside",
                because="functions that this process has registered are not there",
                hint="call the kernel here: dlc.build(s, args)",
            )  # fmt: skip
        outcome = self.worker.call(
            "load",
            {**described(self.source, self.target), "threads": self.threads},
            data=self.source.text.encode(),
            timeout_s=LOAD_LIMIT_S,
        )
        if not outcome.ok:
            return outcome
        self._loaded = (self.worker.generation, outcome.value["handle"])
        return None

    @property
    def handle(self) -> int:
        """The loaded kernel's number in the worker."""
        if self._loaded is None:
            raise MeasurementError(f"use {self.name}", "the kernel is not loaded in the worker")
        return self._loaded[1]

    def run(self, arrays: Mapping[str, Array], *, timeout_s: float) -> Outcome:
        """Run the kernel once; the outcome's arrays are the outputs.

        Parameters
        ----------
        arrays : mapping of str to array
            All parameters by name; outputs hold what they are to start with.
        timeout_s : float
            Limit [s].
        """
        outputs = [param.name for param in self.params if param.is_output]
        return self._call("run", {}, arrays=arrays, outputs=outputs, timeout_s=timeout_s)

    def _call(self, entry: str, params: Mapping[str, Any], **options: Any) -> Outcome:
        """Call an entry point of the worker for this kernel; load the kernel in a new process."""
        if failure := self.load():
            return failure
        generation = self.worker.generation
        own = {"handle": self.handle, "threads": self.threads}
        outcome = self.worker.call(entry, {**params, **own}, **options)
        if outcome.kind == "error" and self.worker.generation != generation:
            return self._call(entry, params, **options)  # its process had ended while idle
        return outcome

    def time(
        self,
        arrays: Mapping[str, Array] | None = None,
        *,
        limits: Mapping[str, float] | None = None,
        seed: int = 0,
        timeout_s: float,
        flops: float | None = None,
    ) -> Timing:
        """Time the kernel on the given arrays, or on random ones.

        Raises
        ------
        MeasurementError
            If the kernel crashes, hangs or cannot be loaded, or if no arrays can be drawn. If
            programs for its target are simulated, or have no times.
        """
        provenance = check_measured(self.target, f"measure {self.name}")
        arrays = self._drawn(seed) if arrays is None else arrays
        params = {
            "random": {"seed": seed, "kind": "uniform"},
            "limits": dict(limits or {}),
        }
        outcome = self._call("time", params, arrays=arrays, timeout_s=timeout_s)
        value = outcome.unwrap(f"measure {self.name}")
        copies = tuple(
            (name, _timing(samples, provenance))
            for name, samples in value.get("copies", {}).items()
        )
        return replace(_timing(value, provenance, flops), copies=copies)

    def pair(
        self,
        other: RemoteKernel | str,
        *,
        limits: Mapping[str, float],
        seed: int = 0,
        timeout_s: float,
        flops: float | None = None,
    ) -> Paired:
        """Time this kernel and another one, or a baseline by name, in alternation.

        `limits` are arguments of `dlcompiler.runtime.timing.paired`, such as ``rounds``.

        Returns
        -------
        Paired
            ``a`` is the other one, ``b`` is this one: a ratio above 1 means this one is faster.

        Raises
        ------
        MeasurementError
            If one of them crashes, hangs or cannot be loaded, or if no arrays can be drawn. If
            programs for their target are simulated, or have no times.
        """
        provenance = check_measured(self.target, f"measure {self.name}")
        beside = measured_here()  # a baseline runs on this processor
        if isinstance(other, RemoteKernel):
            beside = check_measured(other.target, f"measure {other.name}")
        arrays = self._drawn(seed)
        if isinstance(other, RemoteKernel) and (failure := other.load()):
            failure.unwrap(f"load {other.name}")
        params = {
            "other": other if isinstance(other, str) else other.handle,
            "random": {"seed": seed, "kind": "uniform"},
            "limits": dict(limits),
        }
        outcome = self._call("pair", params, arrays=arrays, timeout_s=timeout_s)
        value = outcome.unwrap(f"measure {self.name}")
        a = _timing(value["other"], beside, flops)
        return Paired(a, _timing(value["own"], provenance, flops), tuple(value["ratios"]))

    def _drawn(self, seed: int) -> dict[str, Array]:
        """Draw the arrays that are used as indices; the worker draws the others."""
        for param in self.params:
            if param.is_number or not param.is_static:
                raise MeasurementError(
                    f"measure {self.name}", "no arrays can be drawn", got=str(param),
                    because="the value of a symbol is not known",
                    hint="dlcompiler.measure(kernel, arrays)",
                )  # fmt: skip
        drawn = valid_indices(self.name, self.args, seed)
        return {self.params[position].name: array for position, array in drawn.items()}
