"""Ten loop nests, each as a schedule and as C that makes the same accesses.

In C, each array is volatile and lies where the simulation puts it, so that the compiler makes each
load and store that is written, in this order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dlcompiler import te
from dlcompiler.schedule import Schedule, create_schedule
from dlcompiler.te import Tensor


@dataclass(frozen=True)
class Nest:
    """A nest, and the caches it is tried on: (bytes, ways, line) of the first and last level."""

    make: Callable[[], tuple[Schedule, Sequence[Tensor]]]
    body: str
    first: tuple[int, int, int]
    last: tuple[int, int, int]


def matmul(n=48):
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return create_schedule(C.op), [A, B, C]


def reordered():
    s, args = matmul()
    (i, j), (k,) = args[2].op.axis, args[2].op.reduce_axis
    s[args[2]].reorder(i, k, j)
    return s, args


def tiled():
    s, args = matmul()
    C = s[args[2]]
    (i, j), (k,) = args[2].op.axis, args[2].op.reduce_axis
    (io, ii), (jo, ji), (ko, ki) = (C.split(axis, 8) for axis in (i, j, k))
    C.reorder(io, jo, ko, ii, ki, ji)
    return s, args


def transpose():
    A = te.placeholder((96, 96), name="A")
    B = te.compute((96, 96), lambda i, j: A[j, i], name="B")
    return create_schedule(B.op), [A, B]


def convolution():
    D, W = te.placeholder((8, 16, 16), name="D"), te.placeholder((4, 8, 3, 3), name="W")
    rc, ry, rx = (
        te.reduce_axis((0, n), name=name) for n, name in ((8, "rc"), (3, "ry"), (3, "rx"))
    )
    Y = te.compute(
        (4, 14, 14),
        lambda o, y, x: te.sum(D[rc, y + ry, x + rx] * W[o, rc, ry, rx], axis=[rc, ry, rx]),
        name="Y",
    )
    return create_schedule(Y.op), [D, W, Y]


def padded():
    D, W = te.placeholder((4, 16, 16), name="D"), te.placeholder((4, 3, 3), name="W")
    P = te.compute(
        (4, 18, 18),
        lambda c, y, x: te.if_then_else(
            te.all(y >= 1, y < 17, x >= 1, x < 17), D[c, y - 1, x - 1], 0.0
        ),
        name="P",
    )
    rc, ry, rx = (
        te.reduce_axis((0, n), name=name) for n, name in ((4, "rc"), (3, "ry"), (3, "rx"))
    )
    Y = te.compute(
        (16, 16),
        lambda y, x: te.sum(P[rc, y + ry, x + rx] * W[rc, ry, rx], axis=[rc, ry, rx]),
        name="Y",
    )
    s = create_schedule(Y.op)
    s[P].compute_inline()
    return s, [D, W, Y]


def stencil():
    G = te.placeholder((66, 66), name="G")
    H = te.compute(
        (64, 64),
        lambda i, j: (
            G[i, j + 1] + G[i + 1, j] + G[i + 1, j + 1] + G[i + 1, j + 2] + G[i + 2, j + 1]
        ),
        name="H",
    )
    s = create_schedule(H.op)
    s[H].split(H.op.axis[1], 24)
    return s, [G, H]


def softmax():
    X = te.placeholder((24, 72), name="X")
    k, m = te.reduce_axis((0, 72), name="k"), te.reduce_axis((0, 72), name="m")
    M = te.compute((24,), lambda i: te.max(X[i, k], axis=k), name="M")
    E = te.compute((24, 72), lambda i, j: X[i, j] - M[i], name="E")
    S = te.compute((24,), lambda i: te.sum(E[i, m], axis=m), name="S")
    Y = te.compute((24, 72), lambda i, j: E[i, j] / S[i], name="Y")
    return create_schedule(Y.op), [X, Y]


def columns():
    """Sum columns of rows that are 4 KiB apart: each element of a column is in the same set."""
    A = te.placeholder((40, 1024), name="A")
    k = te.reduce_axis((0, 40), name="k")
    B = te.compute((64,), lambda j: te.sum(A[k, j * 16], axis=k), name="B")
    return create_schedule(B.op), [A, B]


def copy():
    A = te.placeholder((3000,), "float64", name="A")
    B = te.compute((3000,), lambda i: A[i], name="B")
    return create_schedule(B.op), [A, B]


def rows():
    A = te.placeholder((50, 70), "int8", name="A")
    k = te.reduce_axis((0, 70), name="k")
    B = te.compute((50,), lambda i: te.sum(A[i, k].astype("int32"), axis=k), name="B")
    return create_schedule(B.op), [A, B]


_STEP = "{ float c = C[i*48+j], a = A[i*48+k], b = B[k*48+j]; C[i*48+j] = c + a*b; }"

NESTS = {
    "matmul, naive": Nest(
        matmul,
        f"""
        for (long i = 0; i < 48; i++) for (long j = 0; j < 48; j++) {{
          C[i*48+j] = 0;
          for (long k = 0; k < 48; k++) {_STEP}
        }}""",
        (4096, 4, 64),
        (32768, 8, 64),
    ),
    "matmul, reordered": Nest(
        reordered,
        f"""
        for (long i = 0; i < 48; i++) {{
          for (long j = 0; j < 48; j++) C[i*48+j] = 0;
          for (long k = 0; k < 48; k++) for (long j = 0; j < 48; j++) {_STEP}
        }}""",
        (4096, 2, 32),
        (16384, 4, 32),
    ),
    "matmul, tiled": Nest(
        tiled,
        f"""
        for (long I = 0; I < 48; I += 8) for (long J = 0; J < 48; J += 8) {{
          for (long i = I; i < I+8; i++) for (long j = J; j < J+8; j++) C[i*48+j] = 0;
          for (long K = 0; K < 48; K += 8)
            for (long i = I; i < I+8; i++) for (long k = K; k < K+8; k++)
              for (long j = J; j < J+8; j++) {_STEP}
        }}""",
        (4096, 4, 64),
        (32768, 16, 64),
    ),
    "transpose": Nest(
        transpose,
        "for (long i = 0; i < 96; i++) for (long j = 0; j < 96; j++) B[i*96+j] = A[j*96+i];",
        (4096, 1, 64),
        (32768, 4, 64),
    ),
    "convolution": Nest(
        convolution,
        """
        for (long o = 0; o < 4; o++) for (long y = 0; y < 14; y++) for (long x = 0; x < 14; x++) {
          Y[(o*14+y)*14+x] = 0;
          for (long c = 0; c < 8; c++) for (long p = 0; p < 3; p++) for (long q = 0; q < 3; q++) {
            float s = Y[(o*14+y)*14+x], d = D[(c*16+y+p)*16+x+q], w = W[((o*8+c)*3+p)*3+q];
            Y[(o*14+y)*14+x] = s + d*w;
          }
        }""",
        (2048, 2, 64),
        (16384, 8, 64),
    ),
    "convolution, padded": Nest(
        padded,
        """
        for (long y = 0; y < 16; y++) for (long x = 0; x < 16; x++) {
          Y[y*16+x] = 0;
          for (long c = 0; c < 4; c++) for (long p = 0; p < 3; p++) for (long q = 0; q < 3; q++) {
            float s = Y[y*16+x], d = 0;
            if (y+p >= 1 && y+p < 17 && x+q >= 1 && x+q < 17) d = D[(c*16+y+p-1)*16+x+q-1];
            float w = W[(c*3+p)*3+q];
            Y[y*16+x] = s + d*w;
          }
        }""",
        (1024, 2, 32),
        (8192, 4, 32),
    ),
    "stencil": Nest(
        stencil,
        """
        for (long i = 0; i < 64; i++) for (long J = 0; J < 72; J += 24)
          for (long j = J; j < J+24; j++) if (j < 64) {
            float s = G[i*66+j+1];
            s += G[(i+1)*66+j]; s += G[(i+1)*66+j+1]; s += G[(i+1)*66+j+2];
            H[i*64+j] = s + G[(i+2)*66+j+1];
          }""",
        (512, 2, 64),
        (8192, 8, 64),
    ),
    "softmax, without exp": Nest(
        softmax,
        """
        for (long i = 0; i < 24; i++) {
          M[i] = 0;
          for (long k = 0; k < 72; k++) { float m = M[i], x = X[i*72+k]; M[i] = m > x ? m : x; }
        }
        for (long i = 0; i < 24; i++) for (long j = 0; j < 72; j++) {
          float x = X[i*72+j], m = M[i];
          E[i*72+j] = x - m;
        }
        for (long i = 0; i < 24; i++) {
          S[i] = 0;
          for (long k = 0; k < 72; k++) { float s = S[i], e = E[i*72+k]; S[i] = s + e; }
        }
        for (long i = 0; i < 24; i++) for (long j = 0; j < 72; j++) {
          float e = E[i*72+j], s = S[i];
          Y[i*72+j] = e / s;
        }""",
        (2048, 4, 64),
        (16384, 4, 64),
    ),
    "columns, all in one set": Nest(
        columns,
        """
        for (long j = 0; j < 64; j++) {
          B[j] = 0;
          for (long k = 0; k < 40; k++) { float s = B[j], a = A[k*1024+j*16]; B[j] = s + a; }
        }""",
        (32768, 8, 64),
        (262144, 8, 64),
    ),
    "copy": Nest(
        copy, "for (long i = 0; i < 3000; i++) B[i] = A[i];", (8192, 2, 128), (65536, 4, 128)
    ),
    "sums of rows": Nest(
        rows,
        """
        for (long i = 0; i < 50; i++) {
          B[i] = 0;
          for (long k = 0; k < 70; k++) { int s = B[i]; int a = A[i*70+k]; B[i] = s + a; }
        }""",
        (1024, 4, 32),
        (8192, 8, 32),
    ),
}
