"""Templates for GPUs whose spaces are counted as a whole: ``--suite gpu``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
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


def conv2d(
    n: int, h: int, ci: int, co: int, k: int, stride: int, pad: int, dtype: str = "float32"
) -> Sequence[Tensor]:
    """Return a convolution of square images with its arguments."""
    data = te.placeholder((n, ci, h, h), name="data", dtype=dtype)
    kernel = te.placeholder((co, ci, k, k), name="kernel", dtype=dtype)
    inside = partial(_inside, pad, h)
    padded = te.compute(
        (n, ci, h + 2 * pad, h + 2 * pad),
        lambda b, c, y, x: te.if_then_else(
            inside(y, x), data[b, c, y - pad, x - pad], te.const(0, dtype)
        ),
        name="pad_temp",
    )
    size = (h + 2 * pad - k) // stride + 1
    rc, ry, rx = (te.reduce_axis((0, e), name=m) for e, m in ((ci, "rc"), (k, "ry"), (k, "rx")))
    out = te.compute(
        (n, co, size, size),
        lambda b, f, y, x: te.sum(
            padded[b, rc, y * stride + ry, x * stride + rx] * kernel[f, rc, ry, rx],
            axis=[rc, ry, rx],
        ),
        name="compute",
    )
    return data, kernel, out


def _inside(pad: int, size: int, y: Any, x: Any) -> Any:
    return te.all(y >= pad, y < size + pad, x >= pad, x < size + pad)


@template(conv2d, device="gpu")
def gpu_conv2d(s: Schedule, outs: Sequence[Tensor], cfg: Any, _target: Target) -> None:
    """Schedule a convolution as the tutorial on tuning convolutions for CUDA does."""
    (out,) = outs
    padded, kernel = s[out].op.input_tensors
    _, f, y, x = s[out].op.axis
    for name, axis in (("tile_f", f), ("tile_y", y), ("tile_x", x)):
        cfg.define_split(name, axis, num_outputs=4)
    for name, axis in zip(("tile_rc", "tile_ry", "tile_rx"), s[out].op.reduce_axis, strict=True):
        cfg.define_split(name, axis, num_outputs=3)
    cfg.define_knob("auto_unroll_max_step", [0, 512, 1500])
    s[padded].compute_inline()
    local = s.cache_write(out, "local")
    shared = [s.cache_read(tensor, "shared", [local]) for tensor in (padded, kernel)]
    own = [s.cache_read(tensor, "local", [local]) for tensor in shared]
    thread = _bind_tiles(s, out, cfg)
    s[local].compute_at(s[out], thread)
    outer, middle, inner = zip(
        *(
            cfg[name].apply(s, local, axis)
            for name, axis in zip(
                ("tile_rc", "tile_ry", "tile_rx"), s[local].op.reduce_axis, strict=True
            )
        ),
        strict=True,
    )
    s[local].reorder(*outer, *middle, *inner, *s[local].op.axis)
    for tile in shared:
        s[tile].compute_at(s[local], outer[-1])
    for tile in own:
        s[tile].compute_at(s[local], middle[-1])
    for tile in shared:
        rest = s[tile].fuse(*s[tile].op.axis)
        for name, tag in (("tile_f", "z"), ("tile_y", "y"), ("tile_x", "x")):
            bound, rest = s[tile].split(rest, nparts=cfg[name].size[2])
            s[tile].bind(bound, te.thread_axis(f"threadIdx.{tag}"))
    step = cfg["auto_unroll_max_step"].val
    s[out].pragma(s[out].op.axis[0], "auto_unroll_max_step", step)


def _bind_tiles(s: Schedule, out: Tensor, cfg: Any) -> Any:
    """Bind the tiles of a convolution to blocks, virtual threads and threads."""
    n, f, y, x = s[out].op.axis
    parts = [
        cfg[name].apply(s, out, axis)
        for name, axis in (("tile_f", f), ("tile_y", y), ("tile_x", x))
    ]
    blocks, virtual, threads, rest = zip(*parts, strict=True)
    for axes, kind in ((blocks, "blockIdx."), (threads, "threadIdx.")):
        for axis, letter in zip(axes, "zyx", strict=True):
            s[out].bind(axis, te.thread_axis(kind + letter))
    for axis in virtual:
        s[out].bind(axis, te.thread_axis("vthread"))
    s[out].reorder(*blocks, *virtual, *threads, n, *rest)
    return threads[-1]
