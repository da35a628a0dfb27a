"""Decide whether work is worth distributing over several cores."""

from __future__ import annotations

from dlcompiler.target import Target

WORTH_SHARING_CYCLES = 1.25e5
"""Work of one core above which other cores are used [cycle]: 36 µs at 3.5 GHz.

Measured on two cores of a Zen 3, for products, softmax, layer norm, windows, reductions and
elementwise functions alike: two threads are as fast as one if the kernel takes 6 µs while the
helper threads spin, and 40 to 70 µs while they sleep.
"""


def is_worth_sharing(cycles: float, target: Target) -> bool:
    """Tell whether parallel work is worth distributing over the cores of a target.

    Parameters
    ----------
    cycles : float
        About how long the work takes on one core [cycle].
    target : Target
        A CPU.

    Examples
    --------
    >>> from dlcompiler.target import resolve
    >>> from dataclasses import replace
    >>> one, two = (replace(resolve("x86-64-avx2"), cores=cores) for cores in (1, 2))
    >>> is_worth_sharing(1e6, one), is_worth_sharing(1e6, two), is_worth_sharing(1e4, two)
    (False, True, False)
    """
    return target.cores > 1 and cycles >= WORTH_SHARING_CYCLES


def product_cycles(flops: float, dtype: str, target: Target) -> float:
    """Return the time of multiply-adds on one core at two FMAs per cycle [cycle]."""
    return flops / (4 * target.lanes(dtype))
