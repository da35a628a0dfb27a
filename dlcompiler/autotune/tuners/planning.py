"""Choose a batch from the points that a model ranks first."""

from __future__ import annotations

import math

import numpy as np

from dlcompiler.autotune.models.base import Indices, Vector


def expected_improvement(predicted: Vector, spread: Vector, best: float) -> Vector:
    """Return by how much each point is expected to be better than the best [log2].

    Parameters
    ----------
    predicted, spread : array of float64, shape (n,)
        Mean and standard deviation of what is expected of each point [log2].
    best : float
        The best that is known [log2].

    Notes
    -----
    **Source:** D. R. Jones, M. Schonlau, W. J. Welch, "Efficient global optimization of expensive
    black-box functions", 1998, equation 15; the normal distribution function by its error function.

    Examples
    --------
    >>> expected_improvement(np.array([3.0, 1.0]), np.array([0.0, 1.0]), 2.0).round(3).tolist()
    [1.0, 0.083]
    """
    gain = predicted - best
    wide = np.maximum(spread, 1e-12)
    z = gain / wide
    below = 0.5 * (1.0 + np.array([math.erf(value / math.sqrt(2.0)) for value in z.tolist()]))
    density = np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)
    result: Vector = np.maximum(gain * below + wide * density, 0.0)
    return result


def diverse(scores: Vector, digits: Indices, count: int, weight: float = 1.0) -> Indices:
    """Choose points that have high scores and many different values of knobs.

    Parameters
    ----------
    scores : array of float64, shape (n,)
        From which to choose, the best first; brought to the range from 0 to 1.
    digits : array of int64, shape (n, knobs)
        Positions of the knobs' values.
    count : int
        How many to choose.
    weight : float
        What a value of a knob that no chosen point has counts, beside scores from 0 to 1.

    Returns
    -------
    array of int64, shape (at most count,)
        Places of the chosen points, in the order in which they were chosen.

    Notes
    -----
    The gain of a set is the sum of its scores and the number of values that it covers: this is
    submodular, so that taking the point with the largest gain is within 1 − 1/e of the best set.
    **Source:** AutoTVM's ``submodular_pick``; T. Chen et al., "Learning to Optimize Tensor
    Programs", NeurIPS 2018, section 3.3.

    Examples
    --------
    >>> diverse(np.array([1.0, 0.9, 0.5]), np.array([[0, 0], [0, 0], [1, 1]]), 2).tolist()
    [0, 2]
    """
    low, high = (float(scores.min()), float(scores.max())) if len(scores) else (0.0, 0.0)
    gains = (scores - low) / (high - low) if high > low else np.zeros(len(scores))
    left = np.ones(len(scores), np.bool_)
    width = int(digits.max(initial=0)) + 1
    is_new = np.ones((digits.shape[1], width), np.bool_)
    knobs = np.arange(digits.shape[1])
    chosen: list[int] = []
    for _ in range(min(count, len(scores))):
        news = is_new[knobs, digits].mean(axis=1) if len(knobs) else 0.0
        place = int(np.argmax(np.where(left, gains + weight * news, -np.inf)))
        chosen.append(place)
        left[place] = False
        is_new[knobs, digits[place]] = False
    return np.array(chosen, np.int64)
