"""Schedule the largest elements of windows of blocks on an accelerator with a matrix unit.

*Before*, then *after*, with tiles of ``filters`` blocks of channels, ``rows`` and ``columns``::

    wide[…] += padded[…] * identity[…]      load identity
    pooled[…] = max(wide[…], …)             for tiles of the result:
    result[…] = pooled[…]                       load padded
                                                wide = 0; wide += padded * identity     GEMM
                                                pooled = -128; pooled = max(pooled, wide)   ALU
                                                store result
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dlcompiler import te
from dlcompiler.ops.base import DeviceSchedule
from dlcompiler.ops.packed.extents import Extents, extents_of
from dlcompiler.ops.packed.schedule import (
    START,
    STORE,
    STORE_ROW,
    THREADS,
    best_config,
    chain_of,
    depths_of,
    divisors,
    in_memory,
    intrinsic_of,
    operands_of,
    tiled,
    tiles,
)
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Filter, Knob, Space, Workload
from dlcompiler.target import Target
from dlcompiler.te import Tensor

_UPDATE, _OTHERS = 2, 2
"""Cycles of an operation of two elements, and of all others for a result, of the RTL of 2021
[clock]."""


def space(workload: Workload, target: Target) -> Space:
    """Return the knobs.

    ``filters``, ``rows`` and ``columns`` of a tile of the result, in blocks of channels; how many
    rows of the window are loaded at a time (``taps``), all if they fit; what ``threads`` divide;
    whether images have ``double`` buffers, without threads; and whether the loop over channels is
    outside those over rows and columns (``weights_first``).
    """
    e = extents_of(workload)
    depths = depths_of(target, e.blocks)
    rows, columns = e.out
    knobs = [
        Knob("filters", divisors(e.filters), kind="split"),
        Knob("rows", tiles(rows), kind="split"),
        Knob("columns", tiles(columns), kind="split"),
        Knob("taps", _taps(e, depths), kind="split"),
        Knob("threads", THREADS),
        Knob("double", (False, True)),
        Knob("weights_first", (False, True)),
    ]

    def fits(values: Mapping[str, Any]) -> bool:
        threads = 1 if values["threads"] == "none" else 2
        seen, results = _elements(values, e)
        buffers = 2 if values["double"] else 1
        return (
            _has_work(values, e)
            and not (values["double"] and threads > 1)
            and seen * threads * buffers <= depths[0]
            and (seen + results) * threads <= depths[2]
        )

    return Space(workload, knobs, [Filter("tiles fit into the memories", fits)])


def _taps(e: Extents, depths: tuple[int, int, int]) -> tuple[int, ...]:
    """Return how many rows of the window may be loaded at a time."""
    seen, results = _elements({"filters": 1, "rows": 1, "columns": 1, "taps": e.kernel[0]}, e)
    fits = seen <= depths[0] and seen + results <= depths[2]
    return e.kernel[:1] if fits else divisors(e.kernel[0])


def _has_work(values: Mapping[str, Any], e: Extents) -> bool:
    """Tell whether there are two tiles for two virtual threads, without a rest."""
    if values["threads"] == "filters":
        return bool(e.filters // values["filters"] % 2 == 0)
    return bool(values["threads"] == "none" or e.out[0] % (2 * values["rows"]) == 0)


def _elements(values: Mapping[str, Any] | Config, e: Extents) -> tuple[int, int]:
    """Return the elements of a tile of images, and of its results."""
    seen = e.reach(0, values["rows"], values["taps"]) * e.reach(1, values["columns"])
    return values["filters"] * seen, values["filters"] * values["rows"] * values["columns"]


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config with the fewest cycles, counted by a formula."""
    found, e = space(workload, target), extents_of(workload)
    bus = target.accelerator.port.bytes_per_cycle
    return best_config(found, lambda config: _cycles(config, e, bus), target)


def _cycles(values: Config, e: Extents, bus: int) -> float:
    """Return about how many cycles a config takes; loads and stores overlap with two threads."""
    (rows, columns), filters = e.out, e.filters // values["filters"]
    down, across = -(-rows // values["rows"]), -(-columns // values["columns"])
    count: int = e.images * filters * down * across
    seen, results = (n * count for n in _elements(values, e))
    seen *= e.kernel[0] // values["taps"]
    loads: float = seen * e.blocks.batch * e.blocks.inputs / bus + START * count
    taps = math.prod(e.kernel)
    computes: float = 2 * seen + results * (taps * _UPDATE + _OTHERS) + START * count * 2
    stores: float = results * (STORE + STORE_ROW / values["columns"])
    if values["threads"] == "none":
        return (max(loads, computes) if values["double"] else loads + computes) + stores
    return max(loads, computes, stores) + 2 * (loads + stores) / count


def apply(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Compute tiles of the result: load blocks, widen them by GEMM, and compare by the ALU.

    Two virtual threads (``threads``) share the engines. Without them, loads may have two buffers
    (``double``).
    """
    scope = target.accelerator.scope_of
    result = outs[0]
    _, pooled = chain_of(result)
    (wide,) = pooled.op.input_tensors
    image, ones = operands_of(wide)
    for stage in (wide, pooled):
        s[stage].set_scope(scope("acc"))
    image = in_memory(s, image, wide, scope("inp"))
    s.cache_read(ones, scope("wgt"), [wide])
    at, _ = tiled(s, result, cfg)
    s[pooled].compute_at(s[result], at)
    p, q = s[pooled].op.reduce_axis
    if cfg["taps"] < int(p.extent):  # the rows of the window divide what is loaded
        outer, p = s[pooled].split(p, cfg["taps"])
        s[pooled].reorder(outer, p, q, *s[pooled].op.axis)
        reader = s[pooled], outer
    else:
        s[pooled].reorder(p, q, *s[pooled].op.axis)
        reader = s[result], at
    for tensor in (image, wide):
        s[tensor].compute_at(*reader)
    if cfg["double"]:
        s[image].double_buffer()
    s[wide].tensorize(s[wide].op.axis[4], te.tensor_intrin(intrinsic_of(wide, ones)))


SCHEDULE = DeviceSchedule(space, default_config, apply)
