"""Which loops NVIDIA's compilers replace by copies of their bodies, without being asked to."""

from __future__ import annotations

from dlcompiler.ir import For, Stmt
from dlcompiler.ir.rewrite import children

MOST_COPIES = 64
"""Longest loop of constant length, with the loops inside, that is replaced by copies, about: in the
machine code of products (sm_86, NVRTC 12.9) those of 64 sums are, but not those of 512; [1]."""
PARTLY = 75
"""Loads, stores and sums up to which copies of a longer loop's body are put together. **Source:**
LLVM, NVPTXTargetTransformInfo.h: a quarter of the threshold for whole loops, 300; [1]."""
MOST_TOGETHER = 16
"""Most such copies, in machine code of small bodies; [1]."""
PRAGMA = "auto_unroll_max_step"
"""With the value 0, the schedule asks the compiler to leave a loop, and those inside, as it is."""


def is_left(loop: For, around: bool) -> bool:
    """Tell whether the schedule asks the compiler to leave a loop as it is.

    Parameters
    ----------
    loop
        The loop.
    around
        Whether it asks so for the loop around.
    """
    given = dict(loop.annotations).get(PRAGMA)
    return loop.kind != "unrolled" and (around if given is None else given == 0)


def is_unrolled(loop: For, *, is_constant: bool) -> bool:
    """Tell whether the compiler puts copies of the body of a loop in its place, if it may.

    Parameters
    ----------
    loop
        The loop.
    is_constant
        Whether its length is known when the code is compiled.
    """
    return loop.kind == "unrolled" or (is_constant and copies(loop) <= MOST_COPIES)


def copies(loop: For) -> int:
    """Return how many copies of its innermost body unrolling would make."""
    extent = getattr(loop.extent, "value", MOST_COPIES + 1)
    return int(extent) * _copies_inside(loop.body)


def copies_together(size: int) -> int:
    """Return how many copies of a body are put together where a loop is too long to disappear.

    Parameters
    ----------
    size
        Loads, stores and sums of the body. [1]
    """
    count = 1
    while 2 * count * size <= PARTLY and count < MOST_TOGETHER:
        count *= 2
    return count


def _copies_inside(stmt: Stmt) -> int:
    if isinstance(stmt, For):
        return copies(stmt)
    parts = (part for part in children(stmt) if isinstance(part, Stmt))
    return max(map(_copies_inside, parts), default=1)
