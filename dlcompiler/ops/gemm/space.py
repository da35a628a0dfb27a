"""The space of configs of a product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dlcompiler.ops.gemm.definition import EXTRA_COLUMNS
from dlcompiler.ops.gemm.product import Product
from dlcompiler.space import Filter, Knob, Space, Workload, divisors, split_knob
from dlcompiler.target import Target

TILE_ROWS = (1, 2, 3, 4, 6, 8, 12, 14)
_COMMON_ROWS = 4
FEW = 32
"""Rows or columns of C up to which forms other than tiles may be faster."""
_DOTS = (1, 2, 4, 8)
_WIDEST_DOTS = max(_DOTS)
_TILE_VECTORS = (1, 2, 3, 4)
_USUAL_BLOCKS = (4, 8, 16, 32)
NEAR = 2**0.5
"""Largest ratio of two block sizes that count as the same choice."""

# Accumulators beyond the registers are spilled, which is slow. The tuner may try some all the same;
# the limit keeps compile times short.
MOST_ACCUMULATORS = 32
_MOST_COPIES = 128


def space(workload: Workload, target: Target) -> Space:
    """Return the configs of `schedule` for a workload.

    ==============  ============================================================================
    ``tile_m``      rows of the register tile
    ``tile_n``      its columns: 1 to 4 vectors of the target
    ``unroll_k``    steps of the reduction in one iteration of its loop
    ``form``        ``tiles``: sums of a tile of C in registers, over all of k;
                    ``rows``: sums of rows of C in the nearest cache, B read row by row;
                    ``dots``: sums of vectors along k, of A and of transposed B
    ``pack``        copy B panel by panel before it is read
    ``pack_a``      copy A block by block before it is read
    ``panel``       tiles side by side in a panel of B; 0: all
    ``block``       tiles below each other in a block of A; 0: all
    ``parallel``    what several cores share: ``panels``, ``blocks``, or nothing
    ==============  ============================================================================
    """
    product = Product.of(workload)
    n = product.n
    lanes = product.tile_lanes(target)
    widest = min(max(n, lanes), EXTRA_COLUMNS + 1)
    columns = tuple(lanes * v for v in _TILE_VECTORS if lanes * v <= widest)
    if product.packed:
        columns = (product.packed,)
    by_fours = product.goes_by_fours
    forms = ("tiles",) if by_fours else _forms(product)
    few = tuple(c for c in _DOTS if c <= max(n, 1) and c not in columns and "dots" in forms)
    rows = split_knob("tile_m", product.m, TILE_ROWS)
    even = (even_blocks(product.m, int(r)) for r in rows.values)
    # Every block can be combined with every tile: the tile may be tuned, and the block then chosen
    # by the number of cores.
    blocks = tuple(sorted({0, *usual_blocks(product.m)}.union(*even)))
    shared = ("", "panels", "blocks") if target.cores > 1 else ("",)
    knobs = [
        rows,
        Knob("tile_n", (*few, *columns)),
        Knob("unroll_k", (1, 2, 4)),
        Knob("form", forms),
        Knob("pack", (False,) if product.packed else (True,) if by_fours else (False, True)),
        Knob("pack_a", (True,) if by_fours else (False, True)),
        Knob("panel", (1, 2, 4, 8, 32, 0), is_by_cores=True),
        Knob("block", blocks, is_by_cores=True),
        Knob("parallel", shared, is_by_cores=True),
    ]
    return Space(workload, knobs, _filters(product, lanes))


def is_panel(tiles: int, columns: int, n: int) -> bool:
    """Tell whether a panel is not much wider than the matrix.

    Parameters
    ----------
    tiles : int
        Number of tiles side by side in the panel.
    columns : int
        Columns of a tile.
    n : int
        Columns of the matrix.
    """
    return tiles <= 1 or tiles * columns < 2 * n


def is_whole(product: Product, tiles: int) -> bool:
    """Tell whether panels of so many tiles end where a packed B ends; 0 is one panel."""
    return tiles == 0 or product.packed == 0 or product.panels % tiles == 0


def usual_blocks(m: int) -> tuple[int, ...]:
    """Return the usual block sizes [tile] that are small enough for a C of `m` rows."""
    return tuple(tiles for tiles in _USUAL_BLOCKS if tiles < -(-m // _COMMON_ROWS))


def even_blocks(m: int, rows: int) -> tuple[int, ...]:
    """Return block sizes [tile] that divide the whole tiles of C, one near each usual size.

    A shorter last block needs one more copy of the register tile in the code, which is a fifth of
    the build time.

    Parameters
    ----------
    m : int
        Rows of C.
    rows : int
        Rows of the register tile.

    Examples
    --------
    >>> even_blocks(512, 6), even_blocks(1024, 6), even_blocks(2048, 6), even_blocks(1024, 4)
    ((5, 17), (5, 10, 17, 34), (11, 31), (4, 8, 16, 32))
    """
    whole = max(m // rows, 1)
    found = []
    for usual in _USUAL_BLOCKS:
        near = [
            (max(size, usual) / min(size, usual), size)
            for size in divisors(whole, int(NEAR * usual))
            if size < whole and usual <= NEAR * size
        ]
        found += [size for _, size in sorted(near)[:1]]
    return tuple(found)


def _forms(product: Product) -> tuple[str, ...]:
    """Return the forms that can read the operands, and may be fast for this shape."""
    rows = product.m <= FEW and product.layout[1] == "N" and not product.packed
    dots = min(product.m, product.n) <= FEW and not product.packed
    return ("tiles", *(["rows"] if rows else []), *(["dots"] if dots else []))


def _filters(product: Product, lanes: int) -> tuple[Filter, ...]:
    def accumulators(v: Any) -> int:
        return int(v["tile_m"] * (v["tile_n"] if v["form"] == "dots" else v["tile_n"] // lanes))

    # The panel may be packed for longer vectors than the target's: one row can then exceed the
    # limit.
    most = max(MOST_ACCUMULATORS, product.packed // lanes)
    return (
        Filter("the form has its own tiles, copies and layouts", _goes_with(product, lanes)),
        Filter(f"at most {most} accumulators", lambda v: accumulators(v) <= most),
        Filter(
            f"at most {_MOST_COPIES} vector operations in the innermost loop",
            lambda v: accumulators(v) * v["unroll_k"] <= _MOST_COPIES,
        ),
        Filter(
            "a panel is not wider than twice the matrix",
            lambda v: is_panel(v["panel"], v["tile_n"], product.n),
        ),
        Filter(
            "nothing is computed beyond packed panels of int8",
            lambda v: not product.goes_by_fours or is_whole(product, v["panel"]),
        ),
    )


def _goes_with(product: Product, lanes: int) -> Callable[[Any], bool]:
    """Return a predicate that tells whether a form allows the values of the other knobs."""

    def is_allowed(v: Any) -> bool:
        has_blocks = v["block"] != 0 or v["pack_a"]
        match v["form"]:
            case "tiles":
                reaches_over = product.packed == 0 and product.n % v["tile_n"] != 0
                return (
                    v["tile_n"] % lanes == 0
                    and max(product.steps, 1) % v["unroll_k"] == 0
                    and (v["pack"] or not reaches_over)
                )
            case "rows":
                return v["tile_n"] % lanes == 0 and not has_blocks and not v["pack"]
        return (
            v["tile_n"] <= _WIDEST_DOTS
            and v["block"] == 0
            and v["pack"] is not product.right_lies_along_k
            and v["pack_a"] is not product.left_lies_along_k
        )

    return is_allowed
