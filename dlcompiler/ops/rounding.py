"""Error bounds: how far a correct result may be from the exact one.

Source: N. J. Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., section 3.1: a sum
of K products, in any order, has an error of at most ``K·u·Σ|a||b|`` to first order, where ``u`` is
half of the distance from 1 to the next larger number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Wide = npt.NDArray[np.float64]

UNITS = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53}
"""Unit roundoff of each float; the integers are exact."""

SMALLEST = {
    "bfloat16": 2.0**-126,
    "float16": 2.0**-14,
    "float32": 2.0**-126,
    "float64": 2.0**-1022,
}
"""The smallest normal number of each float; below it, errors are not relative to the result."""


def unit(dtype: str) -> float:
    """Return the unit roundoff of a dtype: 0 for integers."""
    return UNITS.get(dtype, 0.0)


def sum_bound(magnitude: Wide, terms: int, dtype: str) -> Wide:
    """Return the bound of a sum of products.

    Parameters
    ----------
    magnitude : array
        Σ|a||b|, element by element.
    terms : int
        K, the number of products in a sum.
    dtype : str
        Dtype of the sums.

    Notes
    -----
    The reference of float64 results is computed in float64; its own error is added.
    """
    own = 2 if dtype == "float64" else 1
    return own * max(terms, 1) * unit(dtype) * magnitude


def rounded(value: Wide, bound: Wide, dtype: str, ulps: float = 1.0) -> Wide:
    """Return the bound after a rounding operation on numbers with an error of `bound`."""
    smallest = SMALLEST.get(dtype, 0.0)
    return bound + 2 * ulps * unit(dtype) * (np.abs(value) + bound + smallest)
