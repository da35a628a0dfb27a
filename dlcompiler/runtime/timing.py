"""Measure times. Every time that this project shows as measured comes from this module."""

from __future__ import annotations

import gc
import math
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial

from dlcompiler.display import render
from dlcompiler.errors import MeasurementError
from dlcompiler.runtime.provenance import MEASURED, Provenance
from dlcompiler.target.detect import cpu_model

Call = Callable[[], object]

# A sample shorter than this would be dominated by reading the clock (0.05 µs) and by single
# interrupts; shorter calls are timed in batches.
_SHORTEST_SAMPLE_S = 100e-6
_LARGEST_BATCH = 100_000
# A longer call replaces the contents of the caches early; it needs no call before the sample.
_WARM_BELOW_S = 20e-3
# An interrupt can make a sample of a short call so long, on a busy machine.
_DOUBTFUL_BELOW_S = 0.2


@dataclass(frozen=True, slots=True)
class Clocked:
    """A call that is timed by a clock of its own, such as the events of a device."""

    call: Call
    """The call; it may return before its work has ended."""
    seconds: Callable[[int], float]
    """Makes a number of calls, and returns their time [s]."""

    def __call__(self) -> object:
        """Make one call."""
        return self.call()


@dataclass(frozen=True)
class Timing:
    """Repeated measurements of one call.

    Examples
    --------
    >>> Timing((0.0381, 0.0382, 0.0395), flops=2 * 1024**3)
    Timing(median=38.2 ms, spread=350 µs, n=3, 56.2 GFLOP/s, measured)
    """

    samples_s: tuple[float, ...]
    """Seconds per call, in the order measured."""
    flops: float | None = None
    """Floating-point operations of one call, if known."""
    batch: int = 1
    """Calls per sample; a sample is their mean."""
    provenance: Provenance = MEASURED
    """Whether the samples are measured, simulated or predicted, and on what."""
    copies: tuple[tuple[str, Timing], ...] = ()
    """Times of copies between host and device, with their names; no part of the samples."""

    def __post_init__(self) -> None:
        if not self.samples_s:
            raise MeasurementError("read a timing", "there are no samples")

    @cached_property
    def median_s(self) -> float:
        """Median [s]."""
        return statistics.median(self.samples_s)

    @cached_property
    def spread_s(self) -> float:
        """Half of the range between the first and the third quartile [s].

        Half of the samples lie within about ``median_s ± spread_s``; 0 for a single sample.
        """
        return half_quartile_range(self.samples_s)

    @property
    def label(self) -> str:
        """Provenance of the time in words, such as ``measured on AMD EPYC``."""
        return str(self.provenance)

    @property
    def n(self) -> int:
        """Number of samples."""
        return len(self.samples_s)

    @property
    def gflops(self) -> float | None:
        """Rate of floating-point operations at the median [GFLOP/s]; ``None`` if not known."""
        return None if self.flops is None else self.flops / self.median_s / 1e9

    def __repr__(self) -> str:
        rate = "" if self.gflops is None else f", {format_rate(self.gflops)} GFLOP/s"
        median, spread = format_seconds(self.median_s), format_seconds(self.spread_s)
        text = f"Timing(median={median}, spread={spread}, n={self.n}{rate}, {self.label})"
        return "\n".join([text, *(f"  {name}: {timing}" for name, timing in self.copies)])

    def _repr_html_(self) -> str:
        return render("timing", self)


@dataclass(frozen=True)
class Paired:
    """Two calls measured in alternation, so that a drift of the machine affects both equally."""

    a: Timing
    b: Timing
    ratios: tuple[float, ...]
    """Time of ``a`` divided by the time of ``b``, round by round."""

    def __post_init__(self) -> None:
        if self.a.provenance.kind != self.b.provenance.kind:
            raise MeasurementError(
                "compare two timings", "they are of different kinds",
                got=f"{self.a.label}, {self.b.label}", expected="both measured, or both simulated",
            )  # fmt: skip

    @cached_property
    def ratio(self) -> float:
        """Median of the ratios: above 1, ``b`` is the faster one."""
        return statistics.median(self.ratios)

    @cached_property
    def ratio_spread(self) -> float:
        """Half of the range between the first and the third quartile of the ratios."""
        return half_quartile_range(self.ratios)

    def __repr__(self) -> str:
        ratio = f"{format_ratio(self.ratio)} ±{self.ratio_spread:.2g}"
        return f"Paired(a/b={ratio}, a={self.a}, b={self.b})"

    def _repr_html_(self) -> str:
        return render("paired", self)


def time_call(
    call: Call,
    *,
    warmup: int = 2,
    min_repeats: int = 5,
    max_repeats: int = 100,
    min_seconds: float = 0.2,
    batch: int | None = None,
    flops: float | None = None,
) -> Timing:
    """Measure how long a call takes.

    Parameters
    ----------
    call : callable
        What to measure, without arguments.
    warmup : int
        Calls before the first sample.
    min_repeats, max_repeats : int
        Least and largest number of samples.
    min_seconds : float
        Samples are taken until they add up to this [s], within the numbers above.
    batch : int, optional
        Calls per sample; by default as many as make a sample of 0.1 ms.
    flops : float, optional
        Floating-point operations of one call.

    Returns
    -------
    Timing

    Raises
    ------
    MeasurementError
        A limit is not positive.
    """
    _check_limits(warmup, min_repeats, max_repeats, min_seconds, batch)
    with undisturbed():
        for _ in range(warmup):
            call()
        size = batch or batch_size(call)
        samples: list[float] = []
        total = 0.0
        while len(samples) < min_repeats or (total < min_seconds and len(samples) < max_repeats):
            seconds = sample(call, size)
            total += seconds
            samples.append(seconds / size)
    return Timing(tuple(samples), flops, size, measured_here())


def paired(
    a: Call,
    b: Call,
    *,
    rounds: int = 11,
    warmup: int = 1,
    batch: int | None = None,
    settle_s: float = 0.0,
    flops: float | None = None,
) -> Paired:
    """Measure two calls in alternation; the order changes from round to round.

    Parameters
    ----------
    a, b : callable
        What to compare, without arguments.
    rounds : int
        Samples of each.
    warmup : int
        Calls of each before the first sample.
    batch : int, optional
        Calls per sample of each; by default as many as make a sample of 0.1 ms.
    settle_s : float
        Pause before each sample [s]. A library's threads may spin for a while after a call and
        take the other one's cores (OpenBLAS: about 0.1 s; ours: 50 µs).
    flops : float, optional
        Floating-point operations of either.

    Returns
    -------
    Paired

    Raises
    ------
    MeasurementError
        A number is not positive.
    """
    _check_limits(warmup, rounds, rounds, 0.0, batch)
    with undisturbed():
        for _ in range(warmup):
            a()
            b()
        size_a, size_b = batch or batch_size(a), batch or batch_size(b)
        of_a: list[float] = []
        of_b: list[float] = []
        turns = (a, size_a, of_a), (b, size_b, of_b)
        for number in range(rounds):
            for call, size, samples in turns if number % 2 == 0 else reversed(turns):
                time.sleep(settle_s)
                samples.append(sample(call, size) / size)
    ratios = tuple(x / y for x, y in zip(of_a, of_b, strict=True))
    here = measured_here()
    timing_a = Timing(tuple(of_a), flops, size_a, here)
    return Paired(timing_a, Timing(tuple(of_b), flops, size_b, here), ratios)


def alternate(
    calls: Sequence[Call],
    *,
    budget_s: float = 1.5,
    sample_s: float = 1e-3,
    rounds: tuple[int, int] = (9, 51),
    warm_s: float = 0.0,
    settle: Call | None = None,
    before: Call | None = None,
    seed: int = 0,
) -> tuple[Timing, ...]:
    """Measure several calls in alternation: in each round, one sample of each in random order.

    Parameters
    ----------
    calls : sequence of callable
        What to compare, without arguments.
    budget_s : float
        Rounds are made until they have taken this long [s].
    sample_s : float
        Shortest sample; shorter calls are repeated in it [s].
    rounds : tuple of int
        Least and largest number of rounds.
    warm_s : float
        Calls before each sample that are not timed, for this long [s]. Threads that slept may wake
        on one core, and the system needs some milliseconds until it has spread them.
    settle : callable, optional
        Called before each sample, for example to wait for threads that spin.
    before : callable, optional
        Called right before each sample, which is then one call, for example to empty the caches.
    seed : int
        Seed of the random order.

    Returns
    -------
    tuple of Timing
        For each call; the samples of one round stand at one position.

    Notes
    -----
    Before each sample of a short call it is called once, so that all start with what a call of
    their own leaves in the caches.
    """
    least, most = rounds
    _check_limits(0, least, most, budget_s, None)
    generator = random.Random(seed)
    with undisturbed():
        sizes = [1 if before else batch_size(call, sample_s) for call in calls]
        samples: list[list[float]] = [[] for _ in calls]
        order = list(range(len(calls)))
        start = time.perf_counter()
        for number in range(most):
            if number >= least and time.perf_counter() - start >= budget_s:
                break
            generator.shuffle(order)
            for n in order:
                if settle is not None:
                    settle()
                if before is not None:
                    before()
                elif not samples[n] or samples[n][-1] < _WARM_BELOW_S:
                    _warm(calls[n], warm_s)
                samples[n].append(sample(calls[n], sizes[n]) / sizes[n])
    here = measured_here()
    return tuple(
        Timing(tuple(of), batch=size, provenance=here)
        for of, size in zip(samples, sizes, strict=True)
    )


def measured_here() -> Provenance:
    """Return the provenance of what this process measures: measured, on this processor."""
    return Provenance("measured", cpu_model())


def half_quartile_range(values: Sequence[float]) -> float:
    """Return half of the range between the first and the third quartile; 0 for one value."""
    if len(values) < 2:
        return 0.0
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return (third - first) / 2


def format_seconds(seconds: float) -> str:
    """Write a time with three digits and a unit.

    Examples
    --------
    >>> format_seconds(0.0382), format_seconds(1.5e-06), format_seconds(75.0), format_seconds(1200)
    ('38.2 ms', '1.5 µs', '75 s', '1,200 s')
    """
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        # 0.9995 s would be written as 1e+03 ms: compare what is written.
        if float(f"{seconds * factor:.3g}") >= 1 or seconds == 0:
            return f"{format_rate(seconds * factor)} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def format_rate(rate: float) -> str:
    """Write a rate with three digits, or as a whole number if it has more; without its unit.

    Examples
    --------
    >>> format_rate(0.524), format_rate(12.34), format_rate(999.6), format_rate(1234.5)
    ('0.524', '12.3', '1,000', '1,234')
    """
    # 999.6 would be written as 1e+03: compare what is written.
    return f"{rate:,.0f}" if abs(float(f"{rate:.3g}")) >= 1000 else f"{rate:.3g}"


def format_ratio(ratio: float) -> str:
    """Write how many times as much something is, with two significant digits.

    Examples
    --------
    >>> format_ratio(1.96), format_ratio(0.0667), format_ratio(9.97), format_ratio(123.4)
    ('2.0×', '0.067×', '10×', '123×')
    """
    if not 0 < ratio < math.inf:
        return f"{ratio:g}×"
    rounded = float(f"{ratio:.1e}")
    return f"{ratio:.{max(1 - math.floor(math.log10(rounded)), 0)}f}×"


def sample(call: Call, size: int) -> float:
    """Return the time of `size` calls [s], by the clock of a `Clocked` call if it is one."""
    if isinstance(call, Clocked):
        return max(call.seconds(size), 1e-9)
    start = time.perf_counter()
    for _ in range(size):
        call()
    return max(time.perf_counter() - start, 1e-9)  # a coarse clock may show no difference


def _warm(call: Call, seconds: float) -> None:
    end = time.perf_counter() + seconds
    call()
    while time.perf_counter() < end:
        call()


def batch_size(call: Call, shortest_s: float = _SHORTEST_SAMPLE_S) -> int:
    """Return how many calls make a sample of the given length, which the clock can resolve."""
    size, sample_of = 1, partial(_shorter_sample, call, shortest_s=shortest_s)
    while (seconds := sample_of(size)) < shortest_s and size < _LARGEST_BATCH:
        size = min(max(math.ceil(size * shortest_s / seconds), 2 * size), _LARGEST_BATCH)
    return size


def _shorter_sample(call: Call, size: int, shortest_s: float) -> float:
    """Return the time of a sample [s]; of one that seems long enough, the shorter of two.

    An interrupt makes one sample of a short call long, but hardly two in a row.
    """
    seconds = sample(call, size)
    is_doubtful = shortest_s <= seconds < _DOUBTFUL_BELOW_S
    return min(seconds, sample(call, size)) if is_doubtful else seconds


@contextmanager
def undisturbed() -> Iterator[None]:
    """Disable the garbage collector during the samples."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _check_limits(
    warmup: int, min_repeats: int, max_repeats: int, min_seconds: float, batch: int | None
) -> None:
    right = (
        warmup >= 0
        and 1 <= min_repeats <= max_repeats
        and 0 <= min_seconds < math.inf
        and (batch is None or batch >= 1)
    )
    if not right:
        raise MeasurementError(
            "time a call",
            "with these limits nothing is measured",
            got=f"warmup={warmup}, repeats {min_repeats} to {max_repeats},"
            f" min_seconds={min_seconds}, batch={batch}",
            expected="warmup >= 0, 1 <= min_repeats <= max_repeats, min_seconds >= 0, batch >= 1",
        )
