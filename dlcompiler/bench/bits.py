"""Compare bit-serial products with our own of int8 and of float32: ``--suite bits``.

The layers C2 to C12 of ResNet-18, and products of matrices. Data have unsigned bits, weights one
bit that stands for -1 or 1, or two bits. Weights are packed ahead for all; packing the bits of data
is part of the time. Results are verified first, and all kernels of a layer alternate.

**Source:** T. Chen and others, OSDI 2018, section 6.2: 2-bit data and 1-bit weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcompiler import ops
from dlcompiler.bench.alternation import alternated
from dlcompiler.bench.implementations import operator_call, target_of
from dlcompiler.bench.rows import Say, measured_rows
from dlcompiler.bench.suites import tables_of
from dlcompiler.bench.works import parse_work
from dlcompiler.errors import VerificationError
from dlcompiler.measurement.aligned import aligned_copy
from dlcompiler.measurement.equality import differences
from dlcompiler.pipeline import build
from dlcompiler.runtime.timing import Call
from dlcompiler.target import Target

SCHEMA_VERSION = 1
BITS = ((1, 1), (2, 1), (2, 2))
"""Bits of data and of weights."""
DENSE = ("1x4096x4096", "64x1024x1024", "512x512x4608")
MOST_ROUNDS = (9, 51)


@dataclass(frozen=True)
class Row:
    """The median times of the kernels of a layer, which alternate."""

    work: str
    threads: int
    seconds: Mapping[str, float]
    """By the name of the numbers: ``float32``, ``int8``, ``2 x 1 bits`` …; [s]."""

    def __str__(self) -> str:
        times = "  ".join(f"{name} {s * 1e6:8.1f} µs" for name, s in self.seconds.items())
        two_by_one = self.seconds["2 x 1 bits"]
        ratios = ", ".join(
            f"{self.seconds[name] / two_by_one:.2f} times as fast as {name}"
            for name in ("int8", "float32")
        )
        return f"{self.work:<42} {times}; 2 x 1 bits {ratios}"


def works() -> dict[str, str]:
    """Return the layers by their labels: works of convolutions and of dense layers."""
    (table,) = tables_of("conv2d")
    layers = {label: work.text for label, work in table.works.items() if label != "C1"}
    return layers | {text: f"dense:{text}" for text in DENSE}


def run_suite(
    say: Say, chosen: Mapping[str, str] | None = None, *, threads: int = 1,
    rounds: tuple[int, int] = MOST_ROUNDS,
) -> dict[str, Any]:  # fmt: skip
    """Measure layers; return the document.

    A layer that fails is listed under ``failed`` with its reason; the others are measured.

    Parameters
    ----------
    say
        Called with each row as soon as it is measured.
    chosen
        Label -> work of a convolution or a dense layer; by default `works`.
    threads
        Threads of all kernels; [1].
    rounds
        Least and largest number of samples of each kernel; [1].
    """
    failed: dict[str, str] = {}
    layers = works() if chosen is None else chosen
    rows = measured_rows(layers, lambda _, text: measure(text, threads, rounds), say, failed)
    return {"version": SCHEMA_VERSION, "bits": rows, "failed": failed}


def measure(text: str, threads: int, rounds: tuple[int, int]) -> Row:
    """Measure the kernels of a layer, verified first."""
    target = target_of(threads)
    calls = {dtype: _call(f"{text},dtype={dtype}", target) for dtype in ("float32", "int8")}
    for data, weight in BITS:
        bits = f"data_bits={data},weight_bits={weight},weights=bipolar"
        calls[f"{data} x {weight} bits"] = _call(f"bitserial_{text},{bits}", target)
    timings = alternated(calls, threads, {"rounds": rounds})
    return Row(text, threads, {name: each.median_s for name, each in timings.items()})


def _call(text: str, target: Target) -> Call:
    """Return the call of a verified kernel with weights that are packed ahead."""
    kind, parameters, _ = operator_call(parse_work(text), "prepacked")
    chosen = ops.select(kind, parameters, target)
    schedule, args = chosen.operator.template(chosen.workload, target, chosen.config)
    kernel = build(schedule, args, target)
    known = chosen.operator.reference(chosen.workload, 0)
    inputs = [aligned_copy(array) for array in known.inputs.values()]
    ((name, expected),) = known.expected.items()
    out = aligned_copy(np.empty(expected.shape, args[-1].dtype))
    kernel(*inputs, out)
    wrong = differences(out, expected, known.bound[name]).first
    if wrong is not None:
        raise VerificationError(
            f"measure {text}", "the kernel is wrong", got=f"{out[wrong]} at {wrong}",
            expected=str(expected[wrong]),
        )  # fmt: skip
    return lambda: kernel(*inputs, out)
