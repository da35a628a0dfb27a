"""Ridge regression in closed form, the fallback where XGBoost is not installed."""

from __future__ import annotations

import numpy as np

from dlcompiler.autotune.models.base import Matrix, Vector

_STRENGTHS = np.logspace(-3, 4, 22)
"""Penalties that are tried, as multiples of the mean variance of a column."""


class RidgeLearner:
    """A linear function of the standardised columns and their squares.

    A value that is absent (NaN) counts as the column's mean. The penalty is the one with the least
    generalised cross-validation error.

    Notes
    -----
    With the singular value decomposition ``X = U·S·Vᵀ`` of the standardised columns, the weights
    for a penalty λ are ``V·diag(s/(s² + λ))·Uᵀ·y``, and the effective number of parameters is
    ``Σ s²/(s² + λ)``. The spread is that of the posterior distribution of a Bayesian linear model
    with the same penalty.

    **Source:** G. H. Golub, M. Heath, G. Wahba, "Generalized cross-validation as a method for
    choosing a good ridge parameter", Technometrics 21, 1979; C. M. Bishop, *Pattern Recognition and
    Machine Learning*, 2006, section 3.3.
    """

    def __init__(self) -> None:
        self._count = 0
        self._centre = self._scale = np.empty(0)
        self._middle = np.empty(0)
        self._weights = np.empty(0)
        self._constant = 0.0
        self._shares = np.empty(0)
        self._directions = np.empty((0, 0))
        self._noise = 0.0
        self._penalty = 1.0

    def fit(self, rows: Matrix, labels: Vector) -> None:
        """Fit to rows, shape ``(n, columns)``, with labels, shape ``(n,)``."""
        wide = np.asarray(rows, np.float64)
        self._count = wide.shape[1]
        self._constant = float(labels.mean()) if len(labels) else 0.0
        known = ~np.isnan(wide)
        counts = np.maximum(known.sum(axis=0), 1)
        self._centre = np.where(known, wide, 0.0).sum(axis=0) / counts
        apart = np.where(known, wide - self._centre, 0.0)
        self._scale = np.sqrt((apart**2).sum(axis=0) / counts)
        self._middle = np.zeros(2 * self._count)
        terms = self._terms(rows)
        self._middle = terms.mean(axis=0) if len(terms) else self._middle
        self._solve(terms - self._middle, labels - self._constant)

    def _solve(self, terms: Matrix | Vector, labels: Vector) -> None:
        """Compute the weights by eigenvectors of the smaller Gram matrix, ``XᵀX`` or ``XXᵀ``."""
        n, columns = terms.shape
        is_tall = n >= columns
        values, vectors = np.linalg.eigh(terms.T @ terms if is_tall else terms @ terms.T)
        kept = values > 1e-9 * max(float(values.max(initial=0.0)), 1e-30)
        squares, vectors = values[kept], vectors[:, kept]
        if is_tall:
            directions = vectors
            along = (terms @ vectors / np.sqrt(squares)).T @ labels
        else:
            directions = terms.T @ vectors / np.sqrt(squares)
            along = vectors.T @ labels
        rest = float(labels @ labels - along @ along)
        best = np.inf
        penalty = 1.0
        for strength in _STRENGTHS * max(n, 1):
            shrunk = strength / (squares + strength)
            error = float(((shrunk * along) ** 2).sum()) + max(rest, 0.0)
            free = n - 1 - float((1 - shrunk).sum())
            score = error / max(free, 1e-3) ** 2
            if score < best:
                best, penalty = score, float(strength)
                self._noise = error / max(free, 1.0)
        self._weights = directions @ (np.sqrt(squares) / (squares + penalty) * along)
        self._directions = directions
        self._shares = squares / (squares + penalty)
        self._penalty = penalty

    def _terms(self, rows: Matrix) -> Vector:
        """Return the standardised columns, then their squares."""
        wide = (np.asarray(rows, np.float64) - self._centre) / np.where(
            self._scale > 0, self._scale, np.inf
        )
        line = np.nan_to_num(np.clip(wide, -8.0, 8.0), nan=0.0)
        return np.concatenate([line, line**2], axis=1)

    def predict(self, rows: Matrix) -> Vector:
        """Predict the label of each row."""
        if not self._count:
            return np.full(len(rows), self._constant)
        predicted: Vector = (self._terms(rows) - self._middle) @ self._weights + self._constant
        return predicted

    def spread(self, rows: Matrix) -> Vector:
        """Return the standard deviation of the posterior distribution of each prediction."""
        if not self._count:
            return np.zeros(len(rows))
        terms = self._terms(rows) - self._middle
        along = terms @ self._directions
        outside = (terms**2).sum(axis=1) - (along**2 * self._shares).sum(axis=1)
        deviation: Vector = np.sqrt(np.maximum(outside, 0.0) * self._noise / self._penalty)
        return deviation

    def importance(self) -> Vector:
        """Return the size of each column's weights; columns are measured in standard deviations."""
        if not self._count:
            return np.zeros(0)
        sizes: Vector = np.abs(self._weights).reshape(2, -1).sum(axis=0)
        return sizes

    def contributions(self, rows: Matrix) -> Vector:
        """Return what each column adds to each prediction; the last column is the constant part."""
        shared = np.full((len(rows), 1), self._constant)
        if not self._count:
            return np.concatenate([np.zeros((len(rows), rows.shape[1])), shared], axis=1)
        parts = (self._terms(rows) - self._middle) * self._weights
        return np.concatenate([parts[:, : self._count] + parts[:, self._count :], shared], axis=1)
