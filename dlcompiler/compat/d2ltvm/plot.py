"""The book's plots: the only module here that uses matplotlib; the first plot imports it."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

FORMATS = ("-", "m--", "g-.", "r:")


def use_svg_display() -> None:
    """Do nothing: the format of figures is the notebook's setting."""


def plot(
    X: Any,
    Y: Any = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    legend: Sequence[str] = (),
    xlim: Any = None,
    ylim: Any = None,
    xscale: str = "linear",
    yscale: str = "linear",
    fmts: Sequence[str] | None = None,
    figsize: tuple[float, float] = (4.5, 3),
    axes: Any = None,
) -> Any:
    """Draw one line, or several.

    Parameters
    ----------
    X, Y : sequence of numbers, or sequence of those
        One list of x serves several lists of y. Without Y, X holds the y and they are counted.
    xlabel, ylabel, legend, xlim, ylim, xscale, yscale, fmts, figsize, axes
        As in matplotlib.

    Returns
    -------
    matplotlib.axes.Axes
    """
    ys = _lists(X if Y is None else Y)
    xs = [range(len(y)) for y in ys] if Y is None else _lists(X)
    xs = xs * len(ys) if len(xs) == 1 else xs
    labels = {"xlabel": xlabel, "ylabel": ylabel}
    if axes is None:
        pyplot = importlib.import_module("matplotlib.pyplot")
        axes = pyplot.figure(figsize=figsize).gca()
    axes.clear()
    styles = fmts or FORMATS
    for number, (x, y) in enumerate(zip(xs, ys, strict=True)):
        axes.plot(np.asarray(x), np.asarray(y), styles[number % len(styles)])
    axes.set(xscale=xscale, yscale=yscale, xlim=xlim, ylim=ylim)
    axes.set(**{name: text for name, text in labels.items() if text is not None})
    if legend:
        axes.legend(list(legend))
    axes.grid()
    return axes


def plot_gflops(sizes: Any, gflops: Any, legend: Sequence[str] = (), xlabel: str = "Size") -> Any:
    """Draw speeds over sizes, both on logarithmic scales."""
    return plot(
        sizes, gflops, xlabel=xlabel, ylabel="GFLOPS", xscale="log", yscale="log",
        legend=legend, fmts=["--"] * (len(_lists(gflops)) - 1) + ["-"],
    )  # fmt: skip


def _lists(values: Any) -> list[Any]:
    """Return several lists of numbers, from one or several."""
    items = list(values)
    return items if items and np.ndim(items[0]) > 0 else [items]
