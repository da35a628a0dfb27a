"""The matrix product of the quickstart notebook, as its first and its last one-thread step."""

from __future__ import annotations

from dlcompiler import te
from dlcompiler.schedule import Schedule, create_schedule
from dlcompiler.te import Tensor

WIDTH = 16


def plain(n: int) -> tuple[Schedule, list[Tensor]]:
    """Return the plain loop nest of ``C = A @ B`` for n × n matrices, and its arguments."""
    a = te.placeholder((n, n), name="A")
    b = te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return create_schedule(c.op), [a, b, c]


def register_tile(n: int) -> tuple[Schedule, list[Tensor]]:
    """Return the product with packed B, computed in tiles that stay in registers."""
    a = te.placeholder((n, n), name="A")
    b = te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    packed_b = te.compute(
        (n // WIDTH, n, WIDTH), lambda p, k, j: b[k, p * WIDTH + j], name="packed_B"
    )
    c = te.compute(
        (n, n),
        lambda i, j: te.sum(a[i, k] * packed_b[j // WIDTH, k, j % WIDTH], axis=k),
        name="C",
    )
    s = create_schedule(c.op)
    tile = s.cache_write(c, "local")
    i, j = s[c].op.axis
    _, j_outer, i_inner, j_inner = s[c].tile(i, j, 4, WIDTH)
    s[tile].compute_at(s[c], j_outer)
    i, j = s[tile].op.axis
    k_outer, k_inner = s[tile].split(s[tile].op.reduce_axis[0], factor=4)
    s[tile].reorder(k_outer, k_inner, i, j)
    s[tile].unroll(k_inner)
    s[tile].unroll(i)
    s[tile].vectorize(j)
    s[c].unroll(i_inner)
    s[c].vectorize(j_inner)
    s[packed_b].vectorize(s[packed_b].op.axis[2])
    return s, [a, b, c]
