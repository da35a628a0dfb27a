"""Matrix multiplication, ``C[i, j] = sum over k of A[i, k] * B[k, j]``.

The definition has two stages before the result: ``matmul.packed``, a copy of B that a schedule may
make panel by panel, and ``matmul.tile``, the sums. Both reach a little beyond the matrices (B
counts as 0 there, A repeats its last row), so that a tile at an edge is computed as any other and
only the copy into C is guarded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.errors import TuningError
from dlcompiler.ops.base import Operator, Reference
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Filter, Knob, Space, Workload, split_knob
from dlcompiler.target import Target
from dlcompiler.te import Tensor

DTYPES = ("float32", "float64")
MAX_EXTENT = 1 << 20

_TILE_ROWS = (1, 2, 3, 4, 5, 6, 7, 8)
_TILE_VECTORS = (1, 2, 3, 4)
_EXTRA_ROWS = max(_TILE_ROWS) - 1
_EXTRA_COLUMNS = 63  # of the widest tile: four vectors of 16 lanes, less one

# Accumulators beyond the registers are spilled, which is slow; the tuner may see for itself, within
# what compiles in a moment.
_MOST_ACCUMULATORS = 32
_MOST_COPIES = 128
_SMALLEST_PARALLEL_FLOPS = 2e7


def matmul(m: int, n: int, k: int, dtype: str = "float32") -> tuple[Tensor, Tensor, Tensor]:
    """Define a matrix multiplication.

    Parameters
    ----------
    m, n, k : int
        A has the shape ``(m, k)``, B ``(k, n)``, C ``(m, n)``.
    dtype : {"float32", "float64"}
        Of all three.

    Returns
    -------
    tuple of Tensor
        A, B and C; the stages between are found from ``C.op.input_tensors``.

    Examples
    --------
    >>> from dlcompiler.ops import matmul
    >>> matmul(64, 32, 16)
    (Tensor(A: float32[64, 16]), Tensor(B: float32[16, 32]), Tensor(C: float32[64, 32]))
    """
    A = te.placeholder((m, k), dtype, "A")
    B = te.placeholder((k, n), dtype, "B")
    rows, columns = m + _EXTRA_ROWS if m else 0, n + _EXTRA_COLUMNS
    packed = te.compute(
        (k, columns),
        lambda k, j: te.if_then_else(j < n, B[k, j], te.const(0, dtype)),
        name="matmul.packed",
    )
    r = te.reduce_axis((0, k), name="k")
    tile = te.compute(
        (rows, columns),
        lambda i, j: te.sum(A[te.minimum(i, max(m - 1, 0)), r] * packed[r, j], axis=r),
        name="matmul.tile",
    )
    return A, B, te.compute((m, n), lambda i, j: tile[i, j], name="C")


def workload(*, m: int, n: int, k: int, dtype: str = "float32") -> Workload:
    """Return the workload of a matrix multiplication."""
    for name, extent in (("m", m), ("n", n), ("k", k)):
        if type(extent) is not int or not 0 <= extent <= MAX_EXTENT:
            raise TuningError(
                "matmul", f"{name} is not an extent", got=repr(extent),
                expected=f"an int from 0 to {MAX_EXTENT}",
            )  # fmt: skip
    if dtype not in DTYPES:
        raise TuningError(
            "matmul", "not a dtype of this operator", got=repr(dtype), expected=", ".join(DTYPES)
        )
    return Workload.of("matmul", m=int(m), n=int(n), k=int(k), dtype=dtype)


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return A, B and C."""
    return matmul(workload["m"], workload["n"], workload["k"], workload["dtype"])


def reference(workload: Workload, seed: int) -> Reference:
    """Return inputs in [-1, 1), their product, and its bound ``c·K·u·Σ|a||b|``.

    Notes
    -----
    **Source:** N. J. Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., section
    3.1: any order of summation keeps ``|error| <= K·u·Σ|a||b|`` to first order. The constant c is 1
    for float32, whose reference is exact in comparison, and 2 for float64, whose reference is in
    float64 too.
    """
    m, n, k, dtype = (workload[name] for name in ("m", "n", "k", "dtype"))
    generator = np.random.default_rng(seed)
    numpy_dtype = dtypes.to_numpy(dtype)
    a, b = (generator.uniform(-1, 1, shape).astype(numpy_dtype) for shape in ((m, k), (k, n)))
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    unit = {"float32": 2.0**-24, "float64": 2.0**-53}[dtype]
    factor = (2 if dtype == "float64" else 1) * max(k, 1) * unit
    return Reference(
        {"A": a, "B": b},
        {"C": wide_a @ wide_b},
        {"C": factor * (np.abs(wide_a) @ np.abs(wide_b))},
    )


# -- the choices --------------------------------------------------------------------------------


def space(workload: Workload, target: Target) -> Space:
    """Return the configs of `schedule` for a workload.

    ==============  ============================================================================
    ``tile_m``      rows of the register tile
    ``tile_n``      its columns: 1 to 4 vectors of the target
    ``unroll_k``    steps of the reduction in one iteration of its loop
    ``pack``        copy B panel by panel before it is read
    ``panel``       tiles side by side in a panel
    ``block``       tiles below each other in a block of rows, which is then the outermost loop;
                    0: panels are outermost, and each is packed once
    ``parallel``    run the outermost loop on several cores
    ==============  ============================================================================
    """
    m, n, k, dtype = (workload[name] for name in ("m", "n", "k", "dtype"))
    lanes = target.lanes(dtype)
    columns = tuple(lanes * vectors for vectors in _TILE_VECTORS if lanes * vectors <= 64)
    row_tiles = -(-max(m, 1) // max(_TILE_ROWS))
    knobs = [
        split_knob("tile_m", m, _TILE_ROWS),
        split_knob("tile_n", max(n, lanes), columns),
        Knob("unroll_k", tuple(u for u in (1, 2, 4, 8) if max(k, 1) % u == 0)),
        Knob("pack", (False, True)),
        Knob("panel", (1, 2, 4, 8)),
        Knob("block", (0, *(tiles for tiles in (4, 8, 16, 32, 64) if tiles < row_tiles))),
        Knob("parallel", (False, True) if target.cores > 1 else (False,)),
    ]
    return Space(workload, knobs, _filters(n, lanes))


def _filters(n: int, lanes: int) -> tuple[Filter, ...]:
    def accumulators(v: Any) -> int:
        return int(v["tile_m"] * v["tile_n"] // lanes)

    return (
        Filter(
            f"at most {_MOST_ACCUMULATORS} accumulators",
            lambda v: accumulators(v) <= _MOST_ACCUMULATORS,
        ),
        Filter(
            f"at most {_MOST_COPIES} vector operations in the innermost loop",
            lambda v: accumulators(v) * v["unroll_k"] <= _MOST_COPIES,
        ),
        Filter("panels of several tiles are packed", lambda v: v["pack"] or v["panel"] == 1),
        Filter(
            "B is packed when tiles reach over its edge",
            lambda v: v["pack"] or n % v["tile_n"] == 0,
        ),
        Filter(
            "a panel is not wider than twice the matrix",
            lambda v: v["panel"] == 1 or v["panel"] * v["tile_n"] < 2 * n,
        ),
    )


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config that a simple model of the processor prefers.

    Notes
    -----
    By a port model, a step of the reduction takes a tile of ``r`` rows and ``v`` vectors
    ``max(r·v, r + v) / 2`` cycles (two multiply-adds and two loads in a cycle), and no less than 4,
    the latency of an FMA; ``r·v + v + 1`` vectors must fit the registers. Of the tiles that need at
    most 3 % more cycles for the whole result than the best, the one with the fewest loads for each
    multiply-add is taken, since B comes from L2.
    **Source:** K. Goto, R. A. van de Geijn, "Anatomy of high-performance matrix multiplication",
    ACM TOMS 34(3), 2008, section 4; ports and latencies: A. Fog, instruction tables (Zen 3).
    """
    choices = space(workload, target)
    values = {knob.name: [int(value) for value in knob.values] for knob in choices.knobs}
    m, n, k = workload["m"], workload["n"], workload["k"]
    lanes = target.lanes(workload["dtype"])
    rows, columns = _best_tile(m, n, lanes, target.vector_registers, values)
    row_tiles, column_tiles = -(-m // rows), -(-n // columns)
    is_parallel = target.cores > 1 and 2.0 * m * n * k >= _SMALLEST_PARALLEL_FLOPS
    pieces = 2 * target.cores
    blocks = [tiles for tiles in values["block"] if 0 < tiles * pieces <= row_tiles]
    return choices.config(
        tile_m=rows,
        tile_n=columns,
        unroll_k=max(steps for steps in values["unroll_k"] if steps <= 4),
        pack=row_tiles >= 4 or n % columns != 0,
        panel=1,
        block=max(blocks) if is_parallel and column_tiles < pieces and blocks else 0,
        parallel=is_parallel,
    )


def _best_tile(
    m: int, n: int, lanes: int, registers: int, values: dict[str, list[int]]
) -> tuple[int, int]:
    """Return rows and columns of the register tile; see `default_config`."""

    def cycles(rows: int, vectors: int) -> float:
        tiles = -(-m // rows) * -(-n // (vectors * lanes))
        return tiles * max(rows * vectors / 2, (rows + vectors) / 2, 4.0)

    shapes = [(rows, columns // lanes) for rows in values["tile_m"] for columns in values["tile_n"]]
    fitting = [(r, v) for r, v in shapes if r * v + v + 1 <= registers]
    least = min(cycles(r, v) for r, v in fitting)
    good = [(r, v) for r, v in fitting if cycles(r, v) <= 1.03 * least]
    rows, vectors = min(good, key=lambda tile: (tile[0] + tile[1]) / (tile[0] * tile[1]))
    return rows, vectors * lanes


# -- the schedule -------------------------------------------------------------------------------


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule a matrix multiplication on a CPU.

    The sums of a tile stay in registers over the whole reduction: the tile's rows and vectors are
    unrolled around a loop over k. B is read from a packed panel, whose rows lie side by side.

    Parameters
    ----------
    s : Schedule
        A fresh schedule of `outs`.
    outs : sequence of Tensor
        C.
    cfg : Config
        Of `space`.
    target : Target
        A CPU.
    """
    (C,) = outs
    (tile,) = C.op.input_tensors
    _, packed = tile.op.input_tensors
    lanes = target.lanes(C.dtype)
    sums = s.cache_write(tile, "local")
    s[tile].compute_inline()

    outermost, panels, innermost = _schedule_result(s, C, cfg, lanes)
    s[sums].compute_at(s[C], innermost)
    _schedule_sums(s, sums, cfg, lanes)
    if cfg["pack"]:
        s[packed].compute_at(s[C], panels)
        vectors, vector = s[packed].split(s[packed].op.axis[1], lanes)
        s[packed].unroll(vectors)
        s[packed].vectorize(vector)
    else:
        s[packed].compute_inline()
    if cfg["parallel"]:
        s[C].parallel(outermost)
    # Last, since only now it is known how short this loop is.
    s[sums].unroll(s[sums].op.axis[0])


def _schedule_result(s: Schedule, C: Tensor, cfg: Config, lanes: int) -> tuple[Any, Any, Any]:
    """Split C into tiles; returns the outermost loop, that over panels, and the innermost."""
    i, j = C.op.axis
    tiles_i, rows = s[C].split(i, cfg["tile_m"])
    tiles_j, columns = s[C].split(j, cfg["tile_n"])
    panels, tiles_j = s[C].split(tiles_j, cfg["panel"])
    vectors, vector = s[C].split(columns, lanes)
    if cfg["block"] == 0:
        loops = [panels, tiles_i, tiles_j]
    else:
        blocks, tiles_i = s[C].split(tiles_i, cfg["block"])
        loops = [blocks, panels, tiles_i, tiles_j]
    s[C].reorder(*loops, rows, vectors, vector)
    s[C].unroll(rows)
    s[C].unroll(vectors)
    s[C].vectorize(vector)
    return loops[0], panels, loops[-1]


def _schedule_sums(s: Schedule, sums: Tensor, cfg: Config, lanes: int) -> None:
    """Order the loops of the register tile: the reduction outside, rows and vectors inside."""
    i, j = s[sums].op.axis
    (k,) = s[sums].op.reduce_axis
    vectors, vector = s[sums].split(j, lanes)
    steps, step = s[sums].split(k, cfg["unroll_k"])
    s[sums].reorder(steps, step, i, vectors, vector)
    s[sums].unroll(step)
    s[sums].unroll(vectors)
    s[sums].vectorize(vector)


MATMUL = Operator("matmul", workload, define, reference, space, default_config, schedule)
