"""The workloads of attention: their sizes, and the operands that they have."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

from dlcompiler import te
from dlcompiler.errors import TuningError
from dlcompiler.ops.attention import Attention, default_scale
from dlcompiler.ops.shapes import checked_dtype, shape_of, shape_text
from dlcompiler.space import Workload
from dlcompiler.te import Tensor

NAME = "attention"
DTYPES = ("float32", "float64")


def workload(
    *,
    batch: int = 1,
    heads: int,
    rows: int,
    length: int,
    depth: int,
    width: int | None = None,
    kv_heads: int | None = None,
    causal: int = 0,
    mask: Sequence[int] | str = "",
    dtype: str = "float32",
) -> Workload:
    """Return the workload of attention.

    Parameters
    ----------
    batch, heads, rows, depth : int
        The queries have the shape ``(batch, heads, rows, depth)``.
    length : int
        The keys and values of a head.
    width : int, optional
        Elements of a value, by default `depth`.
    kv_heads : int, optional
        Heads of keys and values, which divide `heads`; by default `heads`.
    causal : int
        1: query i sees the keys up to i.
    mask : shape
        Shape of numbers that are added to the scores ``(batch, heads, rows, length)``, to which it
        is broadcast: four extents. By default there is no mask.
    dtype : str
        Of all arrays.
    """
    sizes = {
        "batch": batch, "heads": heads, "rows": rows, "length": length, "depth": depth,
        "width": depth if width is None else width,
        "kv_heads": heads if kv_heads is None else kv_heads,
    }  # fmt: skip
    sizes = {name: _size(name, value) for name, value in sizes.items()}
    if sizes["heads"] % max(sizes["kv_heads"], 1) or not sizes["kv_heads"] <= sizes["heads"]:
        raise TuningError(
            NAME, "the heads of keys do not divide those of queries",
            got=str(sizes["kv_heads"]), expected=f"a divisor of {sizes['heads']}",
        )  # fmt: skip
    if causal not in (0, 1):
        raise TuningError(NAME, "causal is 0 or 1", got=repr(causal))
    text = shape_text(mask, NAME) if mask else ""
    scores = tuple(sizes[name] for name in ("batch", "heads", "rows", "length"))
    if text:
        _check_mask(shape_of(text), scores)
    kind = checked_dtype(dtype, DTYPES, NAME)
    return Workload.of(NAME, **sizes, causal=int(causal), mask=text, dtype=kind)


def _size(name: str, value: int) -> int:
    number = operator.index(value)
    if number < (1 if name in ("heads", "kv_heads") else 0):
        raise TuningError(NAME, f"{name} is too small", got=repr(value), expected="1 or more")
    return number


def _check_mask(mask: Sequence[int], scores: Sequence[int]) -> None:
    fits = len(mask) == len(scores) and all(
        extent in (1, whole) for extent, whole in zip(mask, scores, strict=True)
    )
    if not fits:
        raise TuningError(
            NAME, "the mask has not the shape of the scores", got=repr(tuple(mask)),
            expected=f"four extents, each 1 or that of {tuple(scores)}",
        )  # fmt: skip


def shapes_of(workload: Workload) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the operands by name, and that of the result as ``out``."""
    p: Mapping[str, Any] = workload.as_dict()
    b, h, g, n, s = (p[name] for name in ("batch", "heads", "kv_heads", "rows", "length"))
    e, v = p["depth"], p["width"]
    found = {"query": (b, h, n, e), "key": (b, g, s, e), "value": (b, g, s, v)}
    more = {"mask": shape_of(p["mask"])} if p["mask"] else {}
    return {**found, **more, "out": (b, h, n, v)}


def operands(workload: Workload) -> tuple[Tensor, ...]:
    """Return ``query``, ``key``, ``value`` and, if there is one, ``mask`` as placeholders."""
    shapes, dtype = shapes_of(workload), workload["dtype"]
    return tuple(
        te.placeholder(shape, dtype, name) for name, shape in shapes.items() if name != "out"
    )


def described(workload: Workload) -> Attention:
    """Return what is computed."""
    return Attention(default_scale(workload["depth"]), bool(workload["causal"]))
