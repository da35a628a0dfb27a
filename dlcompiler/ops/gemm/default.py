"""The default configs of products, chosen by a simple model of the processor."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dlcompiler import dtypes
from dlcompiler.ops.fours import tile_fits
from dlcompiler.ops.gemm.predict import predicted_cycles, step_cycles
from dlcompiler.ops.gemm.product import MAX_PANEL, Product
from dlcompiler.ops.gemm.space import (
    MOST_ACCUMULATORS,
    NEAR,
    TILE_ROWS,
    even_blocks,
    is_panel,
    is_whole,
    space,
    usual_blocks,
)
from dlcompiler.ops.sharing import is_worth_sharing, product_cycles
from dlcompiler.space import Config, Space, Workload
from dlcompiler.target import Target

FROM_L2 = 2.5
"""Cost of loading a vector of B from L2, in loads of an element of A from L1."""
_READ_BYTES = 16
"""Bandwidth of one core for matrices beyond its own caches [byte / cycle]. It decides if C has few
rows or columns."""
_ROW_PANELS, _DOT_PANELS = (32, 8, 4, 2, 1), (8, 4, 2, 1)
"""Tiles in a panel of B that one core takes of few rows of C, and of dot products; the best first,
where they share B evenly."""
_PANELS = (1, 2, 4, 8, 32)
_PANEL, _WIDE_PANEL = 128, 512
"""Columns in a panel of B that blocks of A run along; if A is copied, once for each panel."""
_PANEL_BYTES = 1 << 18
"""Most bytes of a panel of B that all rows of A run along: its copy overlaps with the products."""
_ROW_BYTES = 256
"""Least width of a packed panel of B, even if the panel then exceeds the cache [byte]: each row of
B lies in another page (measured on Zen 3, 16 and 32 rows of A: 384 bytes instead of 192 are 1.1 to
1.4 times as fast)."""
_BEYOND = 1.03
"""Most tiles of all panels for each tile of the matrix; [1] (measured on Zen 3: 12 tiles for 9
take twice as long as 9 do)."""
_BLOCK_TILES = 16
"""Most tiles in a block that one core takes: small enough to be shared out evenly."""
_EVEN = 0.9
"""Least utilisation of the cores at which pieces count as even."""
_SHORT_K, _LOW_TILE = 64, 4
"""Steps of the reduction below which tiles are kept low: the end of one tile and the beginning of
the next must overlap (measured on Zen 3: up to a quarter faster)."""
_WAYS, _SETS_BYTES = 8, 4096
"""Lines in a set of the nearest cache, at least, and the bytes after which a set comes again. Rows
of A that lie a multiple of that apart share a set (measured: 14 rows of 1024 float32 take 10 %
longer than 8)."""
_UNROLLED = 64
"""Most multiply-adds in an iteration over k (measured: 3 to 6 % faster than one step for each)."""
_ROWS_OF_B = 4
"""Rows of B that are added to rows of C at a time."""


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config that a simple model of the processor prefers.

    Notes
    -----
    If C has few rows or few columns, copies may save nothing: the rows of B, or the vectors along
    k, are read once. The form with the fewest `predicted_cycles` is taken. Its tile is chosen by a
    port model: a step of the reduction takes
    ``max(r·v, r + v) / 2`` cycles for a tile of ``r`` rows and ``v`` vectors (two multiply-adds and
    two loads in a cycle), and at least the latency of an FMA; ``r·v + v + 1`` vectors must fit the
    registers. Of the tiles that need at most 3 % more cycles for the whole result than the best,
    the one with the fewest loads is taken, those of B counted `FROM_L2` times.
    **Source:** K. Goto, R. A. van de Geijn, "Anatomy of high-performance matrix multiplication",
    ACM TOMS 34(3), 2008, section 4.
    """
    product = Product.of(workload)
    choices = space(workload, target)
    made = {"tiles": lambda: _tiles(product, target, choices)}
    made |= {"rows": lambda: _rows(product, target), "dots": lambda: _dots(product, target)}
    usual = {"pack": False, "pack_a": False, "block": 0, "parallel": ""}
    forms = [{**usual, **made[form]()} for form in _values(choices)["form"]]
    return choices.config(**min(forms, key=lambda v: predicted_cycles(product, v, target)))


def packed_width(m: int, target: Target, dtype: str = "float32") -> int:
    """Return the number of columns of a panel of packed weights.

    It is two vectors, as in the tile that `default_config` prefers. With one row of A these would
    be too few sums to hide the latency of an FMA: then it is eight vectors, with two rows four.

    Parameters
    ----------
    m : int
        Rows of A in a call.
    target : Target
        Where it runs.
    dtype : str
        Dtype of the sums.
    """
    vectors = {1: 8, 2: 4}.get(m, 2)
    return min(vectors * target.lanes(dtype), MAX_PANEL)


def _values(choices: Space) -> dict[str, tuple[Any, ...]]:
    return {knob.name: knob.values for knob in choices.knobs}


def _is_parallel(product: Product, target: Target) -> bool:
    m, n, k, stack = product.m, product.n, product.k, math.prod(product.batch)
    products = product_cycles(2.0 * stack * m * n * k, product.sums_dtype, target)
    moved = stack * ((m + n) * k + m * n) * dtypes.bytes_of(product.dtype) / _READ_BYTES
    return is_worth_sharing(products + moved, target)


def _rows(product: Product, target: Target) -> dict[str, Any]:
    lanes = target.lanes(product.sums_dtype)
    columns = 2 * lanes if product.n >= 2 * lanes else lanes
    usual = {"form": "rows", "tile_n": columns, "unroll_k": _ROWS_OF_B, "panel": 0}
    possible = [{**usual, "tile_m": rows} for rows in TILE_ROWS if rows <= max(product.m, 1)]
    values = min(possible, key=lambda v: predicted_cycles(product, v, target))
    if not _is_parallel(product, target):
        return values
    return {**values, "panel": _panel(product, columns, _ROW_PANELS, target), "parallel": "panels"}


def _dots(product: Product, target: Target) -> dict[str, Any]:
    rows = _largest((1, 2, 4), product.m)
    most = target.vector_registers // 2 // rows  # the others hold vectors of A and of B
    columns = _largest([c for c in (1, 2, 4, 8) if c <= most], product.n)
    values = {
        "form": "dots", "tile_m": rows, "tile_n": columns, "unroll_k": 1, "panel": 0,
        "pack": not product.right_lies_along_k, "pack_a": not product.left_lies_along_k,
    }  # fmt: skip
    if not _is_parallel(product, target):
        return values
    if product.batch and product.batch[0] >= 2 * target.cores:
        return {**values, "parallel": "panels"}
    tiles = -(-product.n // columns)
    if tiles < 2 * target.cores:
        return {**values, "parallel": "blocks"}
    return {**values, "panel": _panel(product, columns, _DOT_PANELS, target), "parallel": "panels"}


def _panel(product: Product, columns: int, sizes: Sequence[int], target: Target) -> int:
    """Return the number of tiles in a panel that distributes the panels most evenly over cores."""
    tiles, stack = -(-product.n // columns), math.prod(product.batch)
    possible = [size for size in sizes if is_panel(size, columns, product.n)]
    return _balanced(possible, tiles, target.cores, stack)


# -- register tiles -------------------------------------------------------------------------------


def _tiles(product: Product, target: Target, choices: Space) -> dict[str, Any]:
    values = _values(choices)
    lanes = product.tile_lanes(target)
    widths = [int(width) for width in values["tile_n"] if int(width) % lanes == 0]

    def fits(rows: int, vectors: int) -> bool:
        if product.goes_by_fours:
            return tile_fits(rows, vectors, target)
        registers = min(target.vector_registers, MOST_ACCUMULATORS)
        return rows * vectors + vectors + 1 <= registers

    is_copied = product.layout[0] == "T" or product.sums_dtype != product.dtype
    tallest = max(TILE_ROWS) if product.steps >= _SHORT_K else _LOW_TILE
    if not is_copied:
        tallest = min(tallest, _rows_in_sets(product))
    heights = [int(rows) for rows in values["tile_m"] if int(rows) <= tallest]
    rows, columns = best_tile(product.m, product.n, lanes, fits, heights, widths)
    sums = rows * columns // lanes
    fitting = [u for u in (1, 2, 4) if sums * u <= _UNROLLED and max(product.steps, 1) % u == 0]
    chosen: dict[str, Any] = {
        "form": "tiles", "tile_m": rows, "tile_n": columns,
        "unroll_k": 1 if product.goes_by_fours else max(fitting, default=1),
        "pack": product.packed == 0, "pack_a": is_copied,
    }  # fmt: skip
    even = even_blocks(product.m, rows)
    chosen |= _pieces(product, target, chosen, usual_blocks(product.m), even)
    return chosen | (
        _shared(product, target, chosen, sorted({*usual_blocks(product.m), *even}))
        if _is_parallel(product, target)
        else {}
    )


def _rows_in_sets(product: Product) -> int:
    """Return how many rows of A the nearest cache keeps if all are read together."""
    apart = max(product.k, 1) * dtypes.bytes_of(product.dtype)
    return _WAYS * (_SETS_BYTES // math.gcd(apart, _SETS_BYTES))


def best_tile(
    m: int,
    n: int,
    lanes: int,
    fits: Callable[[int, int], bool],
    heights: Sequence[int],
    widths: Sequence[int],
) -> tuple[int, int]:
    """Return rows and columns of the register tile; see `default_config`."""

    def cycles(rows: int, vectors: int) -> float:
        whole, rest = divmod(m, rows)
        below = whole * step_cycles(rows, vectors) + step_cycles(rest, vectors)
        return below * -(-n // (vectors * lanes))

    shapes = [(rows, width // lanes) for rows in heights for width in widths]
    fitting = [(r, v) for r, v in shapes if fits(r, v)] or [min(shapes)]
    least = min(cycles(r, v) for r, v in fitting)
    good = [(r, v) for r, v in fitting if cycles(r, v) <= 1.03 * least]

    def loads(rows: int, vectors: int) -> float:
        below = m + -(-m // rows) * FROM_L2 * vectors
        return below * -(-n // (vectors * lanes))

    rows, vectors = min(good, key=lambda tile: loads(*tile))
    return rows, vectors * lanes


def _pieces(
    product: Product,
    target: Target,
    chosen: Mapping[str, Any],
    usual: Sequence[int],
    even: Sequence[int],
) -> dict[str, int]:
    """Return how many tiles are in a panel of B and a block of A.

    A block of A fits L2 beside a tile of B, which all rows of the block read; B is read from L3,
    panel by panel. If all of A fits, or its rows are too long, panels of B are in L2 instead. A
    block that divides A is preferred, even if it is a little larger: it saves a copy of the tile's
    code, and the size itself makes little difference (measured on Zen 3: 5 to 34 tiles of 1024³
    within 1 %).
    """
    l2 = target.cache_bytes(1)
    along_k = max(product.steps, 1) * product.step_bytes
    in_l2 = 3 * l2 // 4 // (along_k * chosen["tile_m"])
    is_in_l2 = product.m * along_k <= l2
    fitting = [tiles for tiles in usual if tiles <= in_l2]
    column_tiles = -(-product.n // chosen["tile_n"])
    if fitting and (chosen["pack_a"] or not is_in_l2):
        widest = (_WIDE_PANEL if chosen["pack_a"] else _PANEL) // chosen["tile_n"]
        block = max((tiles for tiles in even if tiles <= NEAR * in_l2), default=max(fitting))
        panel = _largest(_whole(product, _PANELS, column_tiles), min(widest, column_tiles))
        return {"block": block, "panel": panel}
    if chosen["pack_a"]:
        return {"block": min(usual, default=0), "panel": 0}
    widest = min(min(l2 // 2, _PANEL_BYTES) // (along_k * chosen["tile_n"]), column_tiles)
    if widest >= column_tiles:
        return {"block": 0, "panel": 0}
    least = -(-_ROW_BYTES // (chosen["tile_n"] * dtypes.bytes_of(product.dtype)))
    allowed = _whole(product, (1, 2, 4), column_tiles)
    wide = [size for size in allowed if size >= least] or [max(allowed)]
    return {"block": 0, "panel": _largest(wide, widest)}


def _whole(product: Product, panels: Sequence[int], tiles: int) -> list[int]:
    """Return the panel widths [tile] with which few tiles of the last panel lie beyond the matrix.

    `tiles` is the matrix's own width. All tiles of the last panel are computed, and those beyond
    the matrix only lane by lane.
    """
    allowed = [size for size in panels if not product.goes_by_fours or is_whole(product, size)]
    return [size for size in allowed if -(-tiles // size) * size <= _BEYOND * tiles]


def _shared(
    product: Product, target: Target, chosen: Mapping[str, Any], blocks: Sequence[int]
) -> dict[str, Any]:
    """Choose the parallel loop: panels of B, or blocks of A if there are few panels."""
    cores = target.cores
    stack = product.batch[0] if product.batch else 1
    column_tiles, row_tiles = -(-product.n // chosen["tile_n"]), -(-product.m // chosen["tile_m"])
    widest = chosen["panel"] or column_tiles
    narrower = [] if chosen["pack_a"] else [p for p in (4, 2, 1) if p < widest]
    narrower = _whole(product, narrower, column_tiles)
    candidates = (chosen["panel"], *narrower)
    panels = [(p, stack * (-(-column_tiles // p) if p else 1)) for p in candidates]
    for panel, pieces in panels:
        if pieces >= 2 * cores and _evenness(pieces, cores) >= _EVEN:
            return {"panel": panel, "parallel": "panels"}
    possible = sorted((tiles for tiles in blocks if tiles <= _BLOCK_TILES), reverse=True)
    if possible and stack == 1 and row_tiles >= 2 * cores * possible[-1]:
        block = _balanced(possible, row_tiles, cores)
        return {"panel": 0, "block": block, "parallel": "blocks"}
    panel, _ = max(panels, key=lambda item: min(_evenness(item[1], cores), _EVEN))
    return {"panel": panel, "parallel": "panels"}


def _balanced(sizes: Sequence[int], tiles: int, cores: int, stack: int = 1) -> int:
    """Return the piece size that uses the cores best; the first one if several are equal."""
    return max(sizes, key=lambda size: min(_evenness(stack * -(-tiles // size), cores), 0.95))


def _evenness(pieces: int, cores: int) -> float:
    """Return the fraction of the cores' time that equal pieces of work use."""
    return pieces / (-(-pieces // cores) * cores) if pieces else 0.0


def _largest(choices: Sequence[int], limit: int) -> int:
    """Return the largest choice that is at most `limit`, or the smallest choice if none is."""
    return max((choice for choice in choices if choice <= limit), default=min(choices))
