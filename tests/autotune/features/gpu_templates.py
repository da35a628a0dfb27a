"""Templates for GPUs with large spaces, as users write them."""

from __future__ import annotations

from dlcompiler import te
from dlcompiler.autotune.templates import template
from dlcompiler.bench.gpu_templates import gpu_conv2d as CONV
from dlcompiler.bench.gpu_templates import gpu_gemm as GEMM

__all__ = ["CONV", "GEMM", "ROWS"]


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
