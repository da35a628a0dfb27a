"""Compare tensor intrinsics with the same loops without them: ``--suite intrinsics``.

Each product is cut into the tiles of its intrinsic, on one thread. The tensorized schedule is
compared with the plain nest of these loops, and with the nest whose innermost data loop is
vectorized and whose rows of the tile are unrolled. Results are verified first.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dlcompiler import te
from dlcompiler.bench.rows import Say, measured_rows
from dlcompiler.ir import Axis
from dlcompiler.measurement import compare, verify
from dlcompiler.runtime.timing import format_ratio
from dlcompiler.schedule import Schedule, create_schedule
from dlcompiler.target import Target, resolve
from dlcompiler.te import Tensor

SCHEMA_VERSION = 1
ROUNDS = 9


@dataclass(frozen=True)
class Variants:
    """Schedules of one product, in the same tiles."""

    args: list[Tensor]
    intrinsic: str
    tensorized: Schedule
    others: Mapping[str, Schedule]

    @staticmethod
    def of(tiled: Schedule, args: list[Tensor], at: Axis, intrinsic: str) -> Variants:
        """Return the variants of a tiled schedule; the intrinsic replaces `at` and inner loops."""
        C = args[-1]
        nest, vectors = tiled.fork("nest"), tiled.fork("vectorized")
        tensorized = tiled.fork("intrinsic")
        tensorized[C].tensorize(at, intrinsic)
        *_, unrolled, innermost = vectors[C].leaf_iter_vars
        vectors[C].vectorize(innermost)
        vectors[C].unroll(unrolled)
        return Variants(args, intrinsic, tensorized, {"nest": nest, "vectorized": vectors})


@dataclass(frozen=True)
class Row:
    """The times of the variants of one product, each in alternation with the tensorized one."""

    work: str
    intrinsic: str
    median_s: float
    """Time of the tensorized schedule [s]."""
    medians_s: Mapping[str, float]
    """Times of the other variants [s]."""
    ratios: Mapping[str, float]
    """Medians of the paired ratios: how many times as fast the intrinsic is; [1]."""
    spreads: Mapping[str, float]
    """Half of the ranges between the quartiles of these ratios; [1]."""

    def __str__(self) -> str:
        others = ", ".join(
            f"{name} {seconds * 1e3:.3f} ms "
            f"({format_ratio(self.ratios[name])} ±{self.spreads[name]:.2g})"
            for name, seconds in self.medians_s.items()
        )
        return f"{self.work:<22} {self.intrinsic:<20} {self.median_s * 1e3:8.3f} ms; {others}"


def _gemm(m: int, n: int, k: int, target: Target) -> Variants:
    rows, columns = te.gemm_tile(target)
    tile = (math.gcd(m, rows), math.gcd(n, columns), math.gcd(k, 64))
    A, B = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    s = create_schedule(C.op)
    i_outer, i_inner = s[C].split(C.op.axis[0], tile[0])
    j_outer, j_inner = s[C].split(C.op.axis[1], tile[1])
    r_outer, r_inner = s[C].split(r, tile[2])
    s[C].reorder(j_outer, i_outer, r_outer, r_inner, i_inner, j_inner)
    name = f"gemv_f32_{tile[1]}x{tile[2]}" if m == 1 else f"gemm_f32_{'x'.join(map(str, tile))}"
    return Variants.of(s, [A, B, C], r_inner, name)


def _dot4(dtype: str, m: int, n: int, k: int, target: Target) -> Variants:
    lanes, groups = target.lanes("int32"), math.gcd(k // 4, 16)
    X = te.placeholder((m, k // 4, 4), dtype, "X")
    W = te.placeholder((k // 4, n, 4), "int8", "W")
    g, q = te.reduce_axis((0, k // 4), name="g"), te.reduce_axis((0, 4), name="q")

    def element(i: Any, j: Any) -> Any:
        return te.sum(X[i, g, q].astype("int32") * W[g, j, q].astype("int32"), axis=[g, q])

    D = te.compute((m, n), element, name="D")
    s = create_schedule(D.op)
    j_outer, j_inner = s[D].split(D.op.axis[1], lanes)
    g_outer, g_inner = s[D].split(g, groups)
    s[D].reorder(D.op.axis[0], j_outer, g_outer, g_inner, q, j_inner)
    name = f"dot4_{'u8s8' if dtype == 'uint8' else 's8s8'}_{lanes}x{groups}"
    return Variants.of(s, [X, W, D], g_inner, name)


WORKS: Mapping[str, Callable[[Target], Variants]] = {
    **{
        f"gemm:{m}x{n}x{k}": functools.partial(_gemm, m, n, k)
        for m, n, k in ((96, 96, 128), (384, 384, 384), (1, 1024, 1024))
    },
    **{
        f"gemm:64x256x256 {dtype}": functools.partial(_dot4, dtype, 64, 256, 256)
        for dtype in ("uint8", "int8")
    },
}
"""Products of float32, and of 8 bits (the first operand) by int8."""


def run_suite(
    say: Say,
    works: Mapping[str, Callable[[Target], Variants]] = WORKS,
    *,
    rounds: int = ROUNDS,
) -> dict[str, Any]:
    """Measure products with and without their intrinsics; return the document.

    A product that fails is listed under ``failed`` with its reason; the others are measured.

    Parameters
    ----------
    say
        Called with each row as soon as it is measured.
    works
        Name -> variants for a target.
    rounds
        Number of samples of each pair of variants.
    """
    failed: dict[str, str] = {}

    def measured(name: str, make: Callable[[Target], Variants]) -> Row:
        return measure(name, make(resolve("cpu")), rounds)

    rows = measured_rows(works, measured, say, failed)
    return {"version": SCHEMA_VERSION, "intrinsics": rows, "failed": failed}


def measure(name: str, variants: Variants, rounds: int) -> Row:
    """Measure the variants of a product, verified first."""
    verify(variants.tensorized, variants.args)
    pairs = {
        other: compare(schedule, variants.tensorized, variants.args, rounds=rounds).timing
        for other, schedule in variants.others.items()
    }
    return Row(
        name,
        variants.intrinsic,
        min(pair.b.median_s for pair in pairs.values()),
        {other: pair.a.median_s for other, pair in pairs.items()},
        {other: pair.ratio for other, pair in pairs.items()},
        {other: pair.ratio_spread for other, pair in pairs.items()},
    )
