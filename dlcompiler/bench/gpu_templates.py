"""Templates for GPUs whose spaces are counted as a whole: ``--suite gpu``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlcompiler import te
from dlcompiler.autotune.templates import template
from dlcompiler.schedule import Schedule
from dlcompiler.target import Target
from dlcompiler.te import Tensor


def gemm(n: int, m: int, k: int, dtype: str = "float32") -> Sequence[Tensor]:
    """Return a matrix product with its arguments."""
    A, B = (
        te.placeholder((n, k), name="A", dtype=dtype),
        te.placeholder((k, m), name="B", dtype=dtype),
    )
    r = te.reduce_axis((0, k), name="k")
    return A, B, te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")


@template(gemm, device="gpu")
def gpu_gemm(s: Schedule, outs: Sequence[Tensor], cfg: Any, _target: Target) -> None:
    """Schedule a product as tutorials for CUDA do: shared and local tiles, virtual threads."""
    (C,) = outs
    A, B = s[C].op.input_tensors
    shared = [s.cache_read(tensor, "shared", [C]) for tensor in (A, B)]
    local = [s.cache_read(tensor, "local", [C]) for tensor in shared]
    CL = s.cache_write(C, "local")
    y, x = s[C].op.axis
    (k,) = s[CL].op.reduce_axis
    cfg.define_split("tile_y", y, num_outputs=4)
    cfg.define_split("tile_x", x, num_outputs=4)
    cfg.define_split("tile_k", k, num_outputs=2)
    cfg.define_knob("unroll", [0, 1])
    by, vy, ty, yi = cfg["tile_y"].apply(s, C, y)
    bx, vx, tx, xi = cfg["tile_x"].apply(s, C, x)
    s[C].reorder(by, bx, vy, vx, ty, tx, yi, xi)
    tags = ("blockIdx.y", "blockIdx.x", "vthread", "vthread", "threadIdx.y", "threadIdx.x")
    for axis, tag in zip((by, bx, vy, vx, ty, tx), tags, strict=True):
        s[C].bind(axis, te.thread_axis(tag))
    s[CL].compute_at(s[C], tx)
    outer, inner = cfg["tile_k"].apply(s, CL, k)
    s[CL].reorder(outer, inner, *s[CL].op.axis)
    for tile in shared:
        s[tile].compute_at(s[CL], outer)
    for tile in local:
        s[tile].compute_at(s[CL], inner)
    if cfg["unroll"].val:
        s[CL].unroll(inner)
    for tile in shared:
        rest, thread = s[tile].split(s[tile].fuse(*s[tile].op.axis), cfg["tile_x"].size[2])
        s[tile].bind(thread, te.thread_axis("threadIdx.x"))
        _, thread = s[tile].split(rest, cfg["tile_y"].size[2])
        s[tile].bind(thread, te.thread_axis("threadIdx.y"))
