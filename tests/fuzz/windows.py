"""Expressions that read moving windows whose indices are not sums of the loops."""

from __future__ import annotations

from dlcompiler import te
from dlcompiler.te import Tensor
from tests.fuzz.templates import Sizes


def bent_window(z: Sizes) -> Tensor:
    """A window whose index jumps at one element, over a stage that reads at two offsets."""
    size, step, length = z.one(), z.rng.choice((1, 2, 3)), z.rng.choice((3, 2, 5))
    bend = _BENDS[z.rng.randrange(len(_BENDS))]
    needed = (size - 1) * step + 2 * length + 1
    A = te.placeholder((needed + 2, 3), z.dtype(("float32", "int32")), name="A")
    P = te.compute((needed + 2, 3), lambda i, j: A[i, j] * 2, name="P")
    Q = te.compute((needed, 3), lambda i, j: P[i, j] + P[i + 2, 2 - j], name="Q")
    source = Q if z.rng.chance(0.5) else P
    k = te.reduce_axis((0, length), name="k")
    return te.compute((size, 3), lambda x, j: te.sum(source[bend(x, k, step), j], axis=k), name="C")


_BENDS = (
    lambda x, k, step: x * step + k - te.if_then_else(k > 1, 1, 0),
    lambda x, k, step: x * step + te.minimum(k, 1),
    lambda x, k, step: x * step + k // 2,
    lambda x, k, step: te.maximum(x * step - te.if_then_else(k > 0, 1, 0), 0) + k,
    lambda x, k, step: x * step + te.if_then_else(x > 2, k, 0),
    lambda x, k, step: (x * step + k) // 2 + (x * step) // 2,
)


def two_windows(z: Sizes) -> Tensor:
    """Two parts of a plane far apart in both dimensions, whose hull is computed."""
    rows, columns, far = z.one(), z.one(), z.rng.choice((1, 5, 9, 30))
    A = te.placeholder((rows + far, columns + far), "float32", name="A")
    P = te.compute(A.shape, lambda i, j: A[i, j] * 2.0, name="P")
    return te.compute((rows, columns), lambda i, j: P[i, j] + P[i + far, j + far], name="C")


TEMPLATES = {"bent_window": bent_window, "two_windows": two_windows}
