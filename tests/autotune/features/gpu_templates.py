"""Templates for GPUs with large spaces, as users write them."""

from __future__ import annotations

from dlcompiler import te
from dlcompiler.autotune.templates import template
from dlcompiler.bench.gpu_templates import gpu_gemm as GEMM

__all__ = ["CONV", "GEMM", "ROWS"]


def conv(n: int, h: int, ci: int, co: int, k: int, stride: int, pad: int, dtype: str = "float32"):
    data = te.placeholder((n, ci, h, h), name="data", dtype=dtype)
    kernel = te.placeholder((co, ci, k, k), name="kernel", dtype=dtype)
    zero = te.const(0, dtype)
    padded = te.compute(
        (n, ci, h + 2 * pad, h + 2 * pad),
        lambda b, c, y, x: te.if_then_else(
            te.all(y >= pad, y < h + pad, x >= pad, x < h + pad),
            data[b, c, y - pad, x - pad],
            zero,
        ),
        name="pad_temp",
    )
    size = (h + 2 * pad - k) // stride + 1
    rc, ry, rx = (te.reduce_axis((0, e), name=m) for e, m in ((ci, "rc"), (k, "ry"), (k, "rx")))
    return (
        data,
        kernel,
        te.compute(
            (n, co, size, size),
            lambda b, f, y, x: te.sum(
                padded[b, rc, y * stride + ry, x * stride + rx] * kernel[f, rc, ry, rx],
                axis=[rc, ry, rx],
            ),
            name="compute",
        ),
    )


@template(conv, device="gpu")
def CONV(s, outs, cfg, target):
    """The schedule of ``tutorial/conv2d_no_batching`` for CUDA."""
    (out,) = outs
    padded, kernel = s[out].op.input_tensors
    n, f, y, x = s[out].op.axis
    rc, ry, rx = s[out].op.reduce_axis
    cfg.define_split("tile_f", f, num_outputs=4)
    cfg.define_split("tile_y", y, num_outputs=4)
    cfg.define_split("tile_x", x, num_outputs=4)
    cfg.define_split("tile_rc", rc, num_outputs=3)
    cfg.define_split("tile_ry", ry, num_outputs=3)
    cfg.define_split("tile_rx", rx, num_outputs=3)
    cfg.define_knob("auto_unroll_max_step", [0, 512, 1500])
    s[padded].compute_inline()
    local = s.cache_write(out, "local")
    aa = s.cache_read(padded, "shared", [local])
    ww = s.cache_read(kernel, "shared", [local])
    al, wl = s.cache_read(aa, "local", [local]), s.cache_read(ww, "local", [local])
    n, f, y, x = s[out].op.axis
    bf, vf, tf, fi = cfg["tile_f"].apply(s, out, f)
    by, vy, ty, yi = cfg["tile_y"].apply(s, out, y)
    bx, vx, tx, xi = cfg["tile_x"].apply(s, out, x)
    kernel_scope = n
    s[out].bind(bf, te.thread_axis("blockIdx.z"))
    s[out].bind(by, te.thread_axis("blockIdx.y"))
    s[out].bind(bx, te.thread_axis("blockIdx.x"))
    for axis in (vf, vy, vx):
        s[out].bind(axis, te.thread_axis("vthread"))
    s[out].bind(tf, te.thread_axis("threadIdx.z"))
    s[out].bind(ty, te.thread_axis("threadIdx.y"))
    s[out].bind(tx, te.thread_axis("threadIdx.x"))
    s[out].reorder(bf, by, bx, vf, vy, vx, tf, ty, tx, n, fi, yi, xi)
    s[local].compute_at(s[out], tx)
    n, f, y, x = s[local].op.axis
    rc, ry, rx = s[local].op.reduce_axis
    rco, rcm, rci = cfg["tile_rc"].apply(s, local, rc)
    ryo, rym, ryi = cfg["tile_ry"].apply(s, local, ry)
    rxo, rxm, rxi = cfg["tile_rx"].apply(s, local, rx)
    s[local].reorder(rco, ryo, rxo, rcm, rym, rxm, rci, ryi, rxi, n, f, y, x)
    s[aa].compute_at(s[local], rxo)
    s[ww].compute_at(s[local], rxo)
    s[al].compute_at(s[local], rxm)
    s[wl].compute_at(s[local], rxm)
    for load in (aa, ww):
        fused = s[load].fuse(*s[load].op.axis)
        tz, fused = s[load].split(fused, nparts=cfg["tile_f"].size[2])
        ty, fused = s[load].split(fused, nparts=cfg["tile_y"].size[2])
        tx, fused = s[load].split(fused, nparts=cfg["tile_x"].size[2])
        s[load].bind(tz, te.thread_axis("threadIdx.z"))
        s[load].bind(ty, te.thread_axis("threadIdx.y"))
        s[load].bind(tx, te.thread_axis("threadIdx.x"))
    s[out].pragma(kernel_scope, "auto_unroll_max_step", cfg["auto_unroll_max_step"].val)


def rows(n: int, m: int, dtype: str = "float32"):
    A = te.placeholder((n, m), name="A", dtype=dtype)
    b = te.placeholder((m,), name="b", dtype=dtype)
    return A, b, te.compute((n, m), lambda i, j: A[i, j] + b[j], name="C")


@template(rows, device="gpu")
def ROWS(s, outs, cfg, target):
    """Threads in three dimensions, tails, and an array in shared memory."""
    (C,) = outs
    i, j = C.op.axis
    cfg.define_knob("ty", [1, 2, 3, 8])
    cfg.define_knob("tx", [1, 5, 8, 32, 48])
    cfg.define_knob("tz", [1, 2, 4])
    cfg.define_knob("step", [1, 2, 3])
    by, ty = s[C].split(i, cfg["ty"].val)
    bx, inner = s[C].split(j, cfg["tx"].val * cfg["tz"].val * cfg["step"].val)
    tx, inner = s[C].split(inner, cfg["tz"].val * cfg["step"].val)
    tz, inner = s[C].split(inner, cfg["step"].val)
    s[C].reorder(by, bx, tz, ty, tx, inner)
    tags = ("blockIdx.y", "blockIdx.x", "threadIdx.z", "threadIdx.y", "threadIdx.x")
    for axis, tag in zip((by, bx, tz, ty, tx), tags, strict=True):
        s[C].bind(axis, te.thread_axis(tag))
