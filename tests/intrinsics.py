"""Products and intrinsics that several tests tensorize."""

from __future__ import annotations

import functools
import operator

from dlcompiler import te
from dlcompiler.ir import For, Load, Store, Var, index_const
from dlcompiler.schedule import create_schedule


def product(m, n, k, dtype="float32"):
    """Return A, B and C = A·B."""
    A, B = te.placeholder((m, k), dtype, "A"), te.placeholder((k, n), dtype, "B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    return A, B, C


def tiled(m, n, k, tile):
    """Return the schedule of a product in tiles, its tensors, and the outermost loop of a tile."""
    A, B, C = product(m, n, k)
    s = create_schedule(C.op)
    (i, j), (r,) = C.op.axis, C.op.reduce_axis
    i_outer, i_inner = s[C].split(i, tile[0])
    j_outer, j_inner = s[C].split(j, tile[1])
    r_outer, r_inner = s[C].split(r, tile[2])
    s[C].reorder(i_outer, j_outer, r_outer, r_inner, i_inner, j_inner)
    return s, [A, B, C], r_inner


def dots(m, n, groups, dtype):
    """Return X, W and the product of 8-bit numbers in groups of four, in int32."""
    X = te.placeholder((m, groups, 4), dtype, "X")
    W = te.placeholder((groups, n, 4), "int8", "W")
    g, q = te.reduce_axis((0, groups), name="g"), te.reduce_axis((0, 4), name="q")

    def element(i, j):
        return te.sum(X[i, g, q].astype("int32") * W[g, j, q].astype("int32"), axis=[g, q])

    return X, W, te.compute((m, n), element, name="D")


def row_sums(rows=4, columns=4, **parts):
    """Declare the sums of some rows, carried out by statements of the loop IR."""
    a = te.placeholder((rows, columns), name="a")
    k = te.reduce_axis((0, columns), name="k")
    c = te.compute((rows,), lambda i: te.sum(a[i, k], axis=k), name="c")

    def carry_out(ins, outs):
        def over(store):
            i = Var("r")
            return For(i, index_const(rows), "serial", store(i))

        def total(i, *first):
            elements = [Load(ins[0], (i, index_const(column))) for column in range(columns)]
            return functools.reduce(operator.add, (*first, *elements))

        made = {
            "body": lambda: over(lambda i: Store(outs[0], (i,), total(i))),
            "reset": lambda: over(lambda i: Store(outs[0], (i,), te.const(0.0, "float32"))),
            "update": lambda: over(lambda i: Store(outs[0], (i,), total(i, Load(outs[0], (i,))))),
        }
        wanted = parts.get("only", ("body", "reset", "update"))
        return tuple(made[mode]() if mode in wanted else None for mode in made)

    return te.decl_tensor_intrin(c.op, carry_out, "row_sums")


def row_sum_schedule(rows, columns, factor=4, inner=4):
    """Return the schedule of row sums in blocks, its tensors, and the loops of a block."""
    A = te.placeholder((rows, columns), name="A")
    k = te.reduce_axis((0, columns), name="k")
    C = te.compute((rows,), lambda i: te.sum(A[i, k], axis=k), name="C")
    s = create_schedule(C.op)
    i_outer, i_inner = s[C].split(C.op.axis[0], factor)
    k_outer, k_inner = s[C].split(k, inner)
    s[C].reorder(i_outer, k_outer, i_inner, k_inner)
    return s, [A, C], (i_outer, k_outer, i_inner, k_inner)
