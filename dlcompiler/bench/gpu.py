"""Count kernels on a simulated GPU, and time the simulation: ``--suite gpu``.

The results of each kernel are compared with `te.evaluate` first, on whole numbers, for which every
order of a sum gives the same. Counters, registers and occupancy are those of `report`. The times
are measured on this CPU: of the compilation, of a simulated call, and of the counters. All run in
one thread, and its processor time is measured, which other programs hardly change.

Then random configs of the space of a template are counted, without making their schedules.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dlcompiler import te
from dlcompiler.autotune.features.space_counters import SpaceCounters
from dlcompiler.bench.gpu_templates import gpu_conv2d, gpu_gemm
from dlcompiler.bench.programs import Program, tiled_gpu_gemm
from dlcompiler.bench.rows import Say, measured_rows
from dlcompiler.errors import VerificationError
from dlcompiler.ops import Operator
from dlcompiler.pipeline import SimulatedKernel, build
from dlcompiler.pipeline.gpu_report import counters_of
from dlcompiler.schedule import create_schedule
from dlcompiler.target import resolve
from dlcompiler.te import Tensor

SCHEMA_VERSION = 1
TARGET = "rtx-a6000"
ROUNDS = 5
BATCH = 10_000
"""Configs of a space that are counted at once; [1]."""
BATCHES = 10


@dataclass(frozen=True)
class Row:
    """The counters of a program, and how long its simulation takes."""

    work: str
    compile_s: float
    """Time until machine code of this CPU simulates the program [s]."""
    simulate_s: float
    """Median time of a simulated call [s]."""
    count_s: float
    """Median time in which its counters are computed [s]."""
    report: Mapping[str, Any]
    """The report as data, see `GPUReport.to_dict`."""

    def __str__(self) -> str:
        parts = [_summary(kernel) for kernel in self.report["kernels"]]
        return (
            f"{self.work:<18} simulated in {self.simulate_s * 1e3:9.2f} ms, counted in "
            f"{self.count_s * 1e3:6.2f} ms; {'; '.join(parts)}"
        )


@dataclass(frozen=True)
class SpaceRow:
    """The rate at which the counters of a space's configs are computed."""

    space: str
    points: int
    """Configs of the space; [1]."""
    rates_per_s: list[float]
    """Configs counted in a second, in each batch, from the first on [1/s]."""
    refused: float
    """Configs that exceed a limit of the GPU, of all that were counted; [1]."""
    alone: float
    """Configs that were lowered one by one, of all that were counted; [1]."""

    def __str__(self) -> str:
        later = sorted(self.rates_per_s[1:] or self.rates_per_s)
        return (
            f"{self.space:<18} {self.points:,} configs: {self.rates_per_s[0]:,.0f} counted in a "
            f"second in the first batch, then {statistics.median(later):,.0f} "
            f"({later[0]:,.0f} to {later[-1]:,.0f}); {self.refused:.0%} refused, "
            f"{self.alone:.1%} lowered"
        )


def run_suite(
    say: Say,
    works: Mapping[str, Callable[[], Program]] | None = None,
    *,
    spaces: Mapping[str, tuple[Operator, Mapping[str, int]]] | None = None,
    rounds: int = ROUNDS,
) -> dict[str, Any]:
    """Count and simulate kernels; return the document.

    A kernel that fails is listed under ``failed`` with its reason; the others are measured.

    Parameters
    ----------
    say
        Called with each row as soon as it is measured.
    works
        Name -> schedule and arguments.
    spaces
        Name -> template and parameters of its workload; by default `SPACES` with all works, and
        none with some.
    rounds
        Number of simulated calls of each.
    """
    failed: dict[str, str] = {}
    rows = measured_rows(
        WORKS if works is None else works,
        lambda name, make: measure(name, *make(), rounds=rounds), say, failed,
    )  # fmt: skip
    if spaces is None:
        spaces = SPACES if works is None else {}
    counted = measured_rows(spaces, lambda name, space: count_space(name, *space), say, failed)
    return {
        "version": SCHEMA_VERSION, "target": TARGET, "gpu": rows, "spaces": counted,
        "failed": failed,
    }  # fmt: skip


def count_space(
    name: str,
    operator: Operator,
    parameters: Mapping[str, int],
    *,
    batches: int = BATCHES,
    size: int = BATCH,
) -> SpaceRow:
    """Count random configs of a template's space, batch by batch; no config comes twice."""
    target, workload = resolve(TARGET), operator.workload(**parameters)
    space = operator.space(workload, target)
    points = np.array(space.sample(batches * size, 0), np.int64)
    counters = SpaceCounters(operator, workload, target, space)
    rates, refused, alone = [], 0, 0
    for start in range(0, len(points), size):
        batch = points[start : start + size]
        begin = time.thread_time()
        found = counters.counts(batch)
        rates.append(len(batch) / (time.thread_time() - begin))
        refused, alone = refused + int(found.is_refused.sum()), alone + int(found.is_alone.sum())
    return SpaceRow(
        name, space.size, rates, refused / len(points), alone / len(points)
    )  # fmt: skip


def measure(name: str, schedule: Any, args: list[Tensor], *, rounds: int) -> Row:
    """Simulate a program, verified first.

    Raises
    ------
    VerificationError
        A result differs from that of `te.evaluate`.
    """
    kernel = build(schedule, args, target=TARGET)
    assert isinstance(kernel, SimulatedKernel)
    begin = time.thread_time()
    simulated = kernel.on_host
    compile_s = time.thread_time() - begin
    *inputs, output = args
    random = np.random.default_rng(0)
    given = {t: random.integers(-4, 5, _shape(t)).astype(t.dtype) for t in inputs}
    result = np.empty(_shape(output), output.dtype)
    simulated(*given.values(), result)
    (expected,) = te.evaluate([output], given)
    if not np.array_equal(result, expected):
        raise VerificationError(f"simulate {name}", "the result is wrong")
    return Row(
        name, compile_s, _median_s(partial(simulated, *given.values(), result), rounds),
        _median_s(partial(counters_of, kernel.program), rounds), kernel.report().to_dict(),
    )  # fmt: skip


def _shape(tensor: Tensor) -> tuple[int, ...]:
    return tuple(int(extent) for extent in tensor.shape)


def _median_s(call: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        begin = time.thread_time()
        call()
        times.append(time.thread_time() - begin)
    return statistics.median(times)


def _summary(kernel: Mapping[str, Any]) -> str:
    """Return the totals of a kernel as text."""
    totals = {
        space: [a["most"] for a in kernel["accesses"] if a["space"] == space]
        for space in ("global", "shared")
    }
    sectors = sum(each.get("sectors", 0) for each in totals["global"])
    requests = sum(each.get("requests", 0) for each in totals["global"])
    passes = sum(each.get("wavefronts", 0) for each in totals["shared"])
    ideal = sum(each.get("ideal_wavefronts", 0) for each in totals["shared"])
    parts = [f"{sectors / max(requests, 1):.3g} sectors a request"]
    parts += [f"conflict degree {passes / ideal:.3g}"] if ideal else []
    needs, found = kernel["resources"], kernel["occupancy"]
    parts.append(f"{needs['registers']} registers ({needs['source']})")
    parts += [f"occupancy {found['fraction']:.0%} by {' and '.join(found['limited_by'])}"]
    return ", ".join(parts)


def convolution(channels: int = 32, size: int = 28) -> Program:
    """Return a 3 × 3 convolution; a block computes 8 channels of 4 rows, from shared memory."""
    data = te.placeholder((channels, size, size), name="data")
    weight = te.placeholder((channels, channels, 3, 3), name="weight")
    inside = partial(_inside, size)
    padded = te.compute(
        (channels, size + 2, size + 2),
        lambda c, y, x: te.if_then_else(inside(y, x), data[c, y - 1, x - 1], 0.0),
        name="padded",
    )
    c, dy, dx = (te.reduce_axis((0, n), name=k) for k, n in (("c", channels), ("dy", 3), ("dx", 3)))
    conv = te.compute(
        (channels, size, size),
        lambda f, y, x: te.sum(padded[c, y + dy, x + dx] * weight[f, c, dy, dx], axis=[c, dy, dx]),
        name="conv",
    )
    s = create_schedule(conv.op)
    s[padded].compute_inline()
    local = s.cache_write(conv, "local")
    f, y, x = s[conv].op.axis
    f_block, f = s[conv].split(f, 8)
    y_block, y = s[conv].split(y, 4)
    s[conv].reorder(f_block, y_block, y, x, f)
    for loop, axis in (
        (f_block, "blockIdx.y"),
        (y_block, "blockIdx.x"),
        (y, "threadIdx.y"),
        (x, "threadIdx.x"),
    ):
        s[conv].bind(loop, te.thread_axis(axis))
    s[local].compute_at(s[conv], x)
    outer, *rest = s[local].op.reduce_axis
    s[local].reorder(outer, *rest, *s[local].op.axis)
    for tensor in (padded, weight):
        shared = s.cache_read(tensor, "shared", [local])
        s[shared].compute_at(s[local], outer)
        loop, thread = s[shared].split(s[shared].fuse(*s[shared].op.axis), size)
        _, row = s[shared].split(loop, 4)
        s[shared].bind(thread, te.thread_axis("threadIdx.x"))
        s[shared].bind(row, te.thread_axis("threadIdx.y"))
    return s, [data, weight, conv]


def _inside(size: int, y: Any, x: Any) -> Any:
    return te.all(y >= 1, y <= size, x >= 1, x <= size)


def row_sums(rows: int = 1024, columns: int = 1024, threads: int = 128) -> Program:
    """Return sums of rows, each of which the threads of a block compute together."""
    A = te.placeholder((rows, columns), name="A")
    k = te.reduce_axis((0, columns), name="k")
    B = te.compute((rows,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("blockIdx.x"))
    _, thread = s[B].split(k, threads)
    s[B].bind(thread, te.thread_axis("threadIdx.x"))
    return s, [A, B]


SPACES: Mapping[str, tuple[Operator, Mapping[str, int]]] = {
    "gemm 512 tutorial": (gpu_gemm, {"n": 512, "m": 512, "k": 512}),
    "conv2d tutorial": (
        gpu_conv2d,
        {"n": 1, "h": 7, "ci": 512, "co": 512, "k": 3, "stride": 1, "pad": 1},
    ),
}
"""Spaces of templates that users of GPUs write."""
WORKS: Mapping[str, Callable[[], Program]] = {
    "gemm 64": partial(tiled_gpu_gemm, 64),
    "gemm 512": partial(tiled_gpu_gemm, 512),
    "gemm 500, ragged": partial(tiled_gpu_gemm, 500),
    "conv2d 32x28x28": convolution,
    "row sums 1024": row_sums,
}
