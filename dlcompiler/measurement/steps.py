"""A table of the steps of an optimisation: a schedule each, verified and measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dlcompiler.analysis import work_of
from dlcompiler.display import model, render
from dlcompiler.errors import MeasurementError
from dlcompiler.ir import PrimFunc
from dlcompiler.measurement.oracle import oracle_of
from dlcompiler.measurement.provenance import check_measured
from dlcompiler.measurement.remote import RemoteKernel
from dlcompiler.measurement.verification import Verified, verify_kernel
from dlcompiler.pipeline import emit_source, lower
from dlcompiler.runtime.timing import Paired, Timing, format_rate, format_ratio, format_seconds
from dlcompiler.schedule import Schedule
from dlcompiler.target import Target, resolve
from dlcompiler.te import Tensor

STEPS_MIME = "application/vnd.dlcompiler.steps+json"
SETTLED = {"settle_s": 0.2, "batch": 8}
"""How samples of two libraries with threads alternate. Threads spin for a while after a call
(OpenBLAS: 0.1 s) and take the other one's cores; threads that slept need a call or two until they
are spread over the cores."""
SLOW_S = 1.0
"""Kernels slower than this [s] are measured in fewer rounds."""


@dataclass(frozen=True, eq=False)
class MeasuredStep:
    """One schedule of the table."""

    title: str
    func: PrimFunc
    """The loop nest as the schedule names it."""
    schedule: Schedule
    """A fork that stays at the state measured."""
    timing: Timing
    """Time of one call [s]."""
    paired: Paired | None
    """The same in alternation with the baseline."""
    verified: Verified
    threads: int | None

    @property
    def ratio(self) -> float | None:
        """Speed relative to the baseline: above 1 is faster."""
        return None if self.paired is None else self.paired.ratio

    def __repr__(self) -> str:
        spread = format_seconds(self.timing.spread_s)
        parts = [f"{self.title}: {format_seconds(self.timing.median_s)} ± {spread}"]
        if self.timing.gflops is not None:
            parts.append(f"{format_rate(self.timing.gflops)} GFLOP/s")
        if self.ratio is not None:
            parts.append(f"{format_ratio(self.ratio)} baseline")
        return ", ".join([*parts, self.timing.label, "verified"])

    def _repr_html_(self) -> str:
        return render("step", self)


class StepTable:
    """Collects schedules with their loop nest, measured speed and verification.

    Parameters
    ----------
    baseline : str, optional
        The function that each is measured against, in alternation: ``numpy.matmul`` is ``a @ b`` of
        the first two parameters. None: there is no baseline.
    threads : int
        Number of threads of kernels and baseline.
    target : str or Target
        What to build for.
    """

    def __init__(
        self,
        baseline: str | None = None,
        *,
        threads: int | None = 1,
        target: str | Target = "cpu",
    ) -> None:
        self.baseline = baseline
        self.threads = threads
        self.target = target
        self.steps: list[MeasuredStep] = []

    def add(
        self,
        title: str,
        schedule: Schedule,
        args: Sequence[Tensor],
        *,
        threads: int | None = None,
        rounds: int = 9,
        timeout_s: float = 120.0,
    ) -> MeasuredStep:
        """Verify and measure a schedule in a worker process, and keep the result.

        Parameters
        ----------
        title : str
            Name of the step.
        schedule : Schedule
            The schedule at the state that is measured.
        args : sequence of Tensor
            Parameters of the kernel: inputs first, outputs last.
        threads : int, optional
            Number of threads, of the table by default.
        rounds : int
            Samples of the kernel and of the baseline; fewer for slow kernels.
        timeout_s : float
            Limit of each run [s].

        Raises
        ------
        VerificationError
            If the result is wrong; nothing is added then.
        MeasurementError
            If the kernel crashes or hangs; if programs for the target are simulated, or have no
            times.
        """
        count = self.threads if threads is None else threads
        target = resolve(self.target)
        check_measured(target, f"measure {title}")
        source, _ = emit_source(schedule, args, target)
        kernel = RemoteKernel(source, target, threads=count, args=args)
        worst, seconds = verify_kernel(kernel, args, oracle_of(schedule, 0), timeout_s=timeout_s)
        work = work_of(schedule.outputs)
        flops = work.flops or None if work else None
        is_slow = seconds > SLOW_S  # then the verified run has warmed it up
        limits: dict[str, float] = {"rounds": rounds}
        if is_slow:
            limits = {"rounds": 3, "warmup": 0, "batch": 1}
        pair = None
        if self.baseline is not None:
            if count != 1:
                limits = {**SETTLED, **limits}
            pair = kernel.pair(self.baseline, limits=limits, timeout_s=timeout_s, flops=flops)
            timing = pair.b
        else:
            repeats = limits.pop("rounds")
            limits |= {"min_repeats": repeats, "max_repeats": repeats}
            timing = kernel.time(limits=limits, timeout_s=timeout_s, flops=flops)
        step = MeasuredStep(
            title,
            lower(schedule, args, simple_mode=True),
            schedule.fork(title),
            timing,
            pair,
            Verified(("numpy",), schedule.outputs[0].static_shape, 0, worst),
            count,
        )
        self.steps.append(step)
        return step

    def __getitem__(self, title: str) -> MeasuredStep:
        for step in self.steps:
            if step.title == title:
                return step
        raise MeasurementError(
            f"step {title!r}", "no such step", expected=", ".join(s.title for s in self.steps)
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return the table as data; times in seconds."""
        return [
            {
                "step": step.title,
                "threads": step.threads,
                "median_s": step.timing.median_s,
                "spread_s": step.timing.spread_s,
                "gflops": step.timing.gflops,
                "baseline_gflops": None if step.paired is None else step.paired.a.gflops,
                "ratio": step.ratio,
                "verified": True,
                "label": step.timing.provenance.kind,
                "on": step.timing.provenance.on,
            }
            for step in self.steps
        ]

    def __repr__(self) -> str:
        heading = f"{'step':<20} {'threads':>7} {'time':>10} {'±':>8} {'GFLOP/s':>8}"
        beside = f" {self.baseline:>13} {'ratio':>6}" if self.baseline else ""
        labels = dict.fromkeys(step.timing.label for step in self.steps)
        lines = [heading + beside + (f"  ({'; '.join(labels)})" if labels else "")]
        for step in self.steps:
            line = (
                f"{step.title:<20} {step.threads or 'all':>7} "
                f"{format_seconds(step.timing.median_s):>10} "
                f"{format_seconds(step.timing.spread_s):>8} "
                f"{format_rate(step.timing.gflops or 0):>8}"
            )
            if step.paired is not None:
                rate = format_rate(step.paired.a.gflops or 0)
                line += f" {rate:>13} {format_ratio(step.paired.ratio):>6}"
            lines.append(line + "  verified")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return render("steps", self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Return text, HTML, and the data that ``dlcompiler tour`` reads."""
        return {
            "text/plain": repr(self),
            "text/html": self._repr_html_(),
            STEPS_MIME: model("steps", self),
        }
