"""Example programs for the threads of a device."""

from __future__ import annotations

from dataclasses import replace

from dlcompiler import te
from dlcompiler.ir import Allocate, PrimFunc, Stmt, seq
from dlcompiler.ir.program import Program
from dlcompiler.passes.merge_thread_loops import merge_thread_loops
from dlcompiler.schedule import Schedule, create_schedule
from dlcompiler.te import Tensor


def tiled_matmul(
    n: int = 32, tile: int = 16, step: int = 8, vthreads: int = 1
) -> tuple[Schedule, list[Tensor]]:
    """Return a product with a tile for each block, whose inputs its threads load together.

    Parameters
    ----------
    n
        Rows and columns.
    tile
        Threads of a block along x and y.
    step
        How much of the reduction is in shared memory at once.
    vthreads
        Virtual threads along x and y that each thread runs.
    """
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = create_schedule(C.op)
    CL = s.cache_write(C, "local")
    tx, ty = te.thread_axis("threadIdx.x"), te.thread_axis("threadIdx.y")
    i, j = s[C].op.axis
    by, i = s[C].split(i, tile * vthreads)
    bx, j = s[C].split(j, tile * vthreads)
    s[C].reorder(by, bx, i, j)
    if vthreads > 1:
        vy, i = s[C].split(i, nparts=vthreads)
        vx, j = s[C].split(j, nparts=vthreads)
        s[C].reorder(vy, vx, i, j)
        for loop in (vy, vx):
            s[C].bind(loop, te.thread_axis("vthread"))
    s[C].bind(by, te.thread_axis("blockIdx.y"))
    s[C].bind(bx, te.thread_axis("blockIdx.x"))
    s[C].bind(i, ty)
    s[C].bind(j, tx)
    s[CL].compute_at(s[C], j)
    k_outer, k_inner = s[CL].split(s[CL].op.reduce_axis[0], step)
    s[CL].reorder(k_outer, k_inner, *s[CL].op.axis)
    for tensor in (A, B):
        shared = s.cache_read(tensor, "shared", [CL])
        s[shared].compute_at(s[CL], k_outer)
        loop, x = s[shared].split(s[shared].fuse(*s[shared].op.axis), tile)
        _, y = s[shared].split(loop, tile)
        s[shared].bind(x, tx)
        s[shared].bind(y, ty)
    return s, [A, B, C]


def staged_copy(n: int = 64, threads: int = 16) -> tuple[Schedule, list[Tensor]]:
    """Return a sum with a constant, whose input a block copies into shared memory first."""
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    shared = s.cache_read(A, "shared", [B])
    tx = te.thread_axis("threadIdx.x")
    block, thread = s[B].split(B.op.axis[0], threads)
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(thread, tx)
    s[shared].compute_at(s[B], block)
    s[shared].bind(s[shared].op.axis[0], tx)
    return s, [A, B]


def convolution(vthreads: int = 1) -> tuple[Schedule, list[Tensor]]:
    """Return a convolution whose padded input is in shared memory, and a serial loop in a block."""
    D, W = te.placeholder((1, 4, 10, 10), name="D"), te.placeholder((8, 4, 3, 3), name="W")
    pad = te.compute(
        (1, 4, 12, 12),
        lambda n, c, y, x: te.if_then_else(
            te.all(y >= 1, y < 11, x >= 1, x < 11), D[n, c, y - 1, x - 1], 0.0
        ),
        name="pad",
    )
    c, ry, rx = (te.reduce_axis((0, m), name=name) for m, name in ((4, "c"), (3, "ry"), (3, "rx")))
    Y = te.compute(
        (1, 8, 10, 10),
        lambda n, f, y, x: te.sum(pad[n, c, y + ry, x + rx] * W[f, c, ry, rx], axis=[c, ry, rx]),
        name="Y",
    )
    s = create_schedule(Y.op)
    s[pad].compute_inline()
    YL = s.cache_write(Y, "local")
    tx, ty = te.thread_axis("threadIdx.x"), te.thread_axis("threadIdx.y")
    n, f, y, x = s[Y].op.axis
    fo, f = s[Y].split(f, 4)
    yo, y = s[Y].split(y, 5)
    s[Y].reorder(n, fo, yo, f, y, x)
    if vthreads > 1:
        virtual, f = s[Y].split(f, nparts=vthreads)
        s[Y].bind(virtual, te.thread_axis("vthread"))
    for loop, tag in (
        (fo, "blockIdx.y"),
        (yo, "blockIdx.x"),
        (y, "threadIdx.y"),
        (x, "threadIdx.x"),
    ):
        s[Y].bind(loop, te.thread_axis(tag))
    s[YL].compute_at(s[Y], x)
    shared = s.cache_read(pad, "shared", [YL])
    s[shared].compute_at(s[YL], s[YL].op.reduce_axis[0])
    loop, inner = s[shared].split(s[shared].fuse(*s[shared].op.axis), 10)
    _, outer = s[shared].split(loop, 5)
    s[shared].bind(inner, tx)
    s[shared].bind(outer, ty)
    return s, [D, W, Y]


def softmax(rows: int = 4, columns: int = 32, threads: int = 8) -> tuple[Schedule, list[Tensor]]:
    """Return a softmax of which a block computes a row: reductions that its threads share."""
    A = te.placeholder((rows, columns), name="A")
    k, k2 = (te.reduce_axis((0, columns), name=name) for name in ("k", "k2"))
    M = te.compute((rows,), lambda i: te.max(A[i, k], axis=k), name="M")
    E = te.compute((rows, columns), lambda i, j: te.exp(A[i, j] - M[i]), name="E")
    S = te.compute((rows,), lambda i: te.sum(E[i, k2], axis=k2), name="S")
    Y = te.compute((rows, columns), lambda i, j: E[i, j] / S[i], name="Y")
    s = create_schedule(Y.op)
    i, j = s[Y].op.axis
    s[Y].bind(i, te.thread_axis("blockIdx.x"))
    s[Y].bind(s[Y].split(j, threads)[1], te.thread_axis("threadIdx.x"))
    for stage, axis in ((S, k2), (E, E.op.axis[1]), (M, k)):
        s[stage].compute_at(s[Y], i)
        s[stage].bind(s[stage].split(axis, threads)[1], te.thread_axis("threadIdx.x"))
    return s, [A, Y]


def as_one_nest(program: Program) -> PrimFunc:
    """Return a program as one function, with one loop for each thread axis of a kernel.

    Kernels in loops of the host are each in loops of their own.
    """
    nests: list[Stmt] = []
    for launch in program.launches:
        nest = merge_thread_loops(launch).as_loops()
        for loop in reversed(launch.loops):
            nest = replace(loop, body=nest)
        nests.append(nest)
    body = seq(nests)
    for buffer in program.temporaries:
        body = Allocate(buffer, body)
    return replace(program.func, body=body, axes={})
