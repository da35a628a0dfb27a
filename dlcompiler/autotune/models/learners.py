"""Learners: protocols of regression on rows of features."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from dlcompiler.autotune.models.base import Indices, Matrix, Vector


class Learner(Protocol):
    """Fits labels by functions of rows. Equal rows and labels in equal order give equal fits."""

    def fit(self, rows: Matrix, labels: Vector) -> None:
        """Fit to rows, shape ``(n, columns)``, with labels, shape ``(n,)``."""

    def predict(self, rows: Matrix) -> Vector:
        """Predict the label of each row."""

    def spread(self, rows: Matrix) -> Vector:
        """Return the standard deviation of each prediction."""

    def importance(self) -> Vector:
        """Return the unscaled importance of each column, shape ``(columns,)``."""

    def contributions(self, rows: Matrix) -> Vector:
        """Return what each column adds to each prediction; the last one is the constant part.

        Shape ``(n, columns + 1)``.
        """


def telling_columns(rows: Matrix) -> Indices:
    """Return the columns that are not constant and differ from all columns before them.

    Examples
    --------
    >>> rows = np.array([[1, 5, 2, 1], [3, 5, 4, 3]], np.float32)
    >>> telling_columns(rows).tolist()
    [0, 2]
    """
    if not len(rows):
        return np.arange(rows.shape[1], dtype=np.int64)
    varies = np.flatnonzero((rows != rows[0]).any(axis=0))
    columns = np.ascontiguousarray(rows[:, varies].T)
    first = {column.tobytes(): place for place, column in reversed(list(enumerate(columns)))}
    return varies[sorted(first.values())]
