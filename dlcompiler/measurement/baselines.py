"""Functions of NumPy that a kernel is measured against, by name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

EINSUM = "numpy.einsum "
"""Begins the name of a baseline; the subscripts follow: ``numpy.einsum ij,jk->ik``."""
BASELINES: dict[str, Callable[..., object]] = {"numpy.matmul": np.matmul}
"""Functions of the inputs, with ``out=``."""
