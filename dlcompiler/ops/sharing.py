"""When work is worth sharing among the cores."""

from __future__ import annotations

from dlcompiler.target import Target

WORTH_SHARING_CYCLES = 1.25e5
"""Work of one core from which others are worth waking [cycle]: 36 µs at 3.5 GHz.

Measured on two cores of a Zen 3, for products, softmax, layer norm, windows, reductions and
elementwise functions alike: a kernel on two threads is as fast as on one where that one needs 6 µs,
if the threads still spin, and 40 to 70 µs, if they sleep.
"""


def is_worth_sharing(cycles: float, target: Target) -> bool:
    """Tell whether work is worth sharing among the cores of a target, if it can be shared.

    Parameters
    ----------
    cycles : float
        About what the work takes one core [cycle].
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
    """Return what multiplications and additions take one core [cycle]: two FMAs in a cycle."""
    return flops / (4 * target.lanes(dtype))
