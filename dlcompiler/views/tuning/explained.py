"""Explain the cost model: feature importance, and the contributions to a prediction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dlcompiler.autotune.explain import Explanation
from dlcompiler.autotune.features.words import words_of
from dlcompiler.runtime.timing import format_seconds
from dlcompiler.space import Value
from dlcompiler.views.render.scene import Cell, Mark, Scene
from dlcompiler.views.tuning.bars import (
    NAME_SHARE,
    ROW_PX,
    bars_height,
    diverging_bars,
    factor,
    share_bars,
)
from dlcompiler.views.tuning.chart import USUAL, text
from dlcompiler.views.tuning.space_points import value_text

MOST_BARS = 14
_LEAST_PART = 1e-6
NOW = (
    "The model has learned from all trials since: what it predicted before a trial ran, which the "
    "table of trials shows, may differ."
)
_COLUMN = "name in the model"
_TOP = 12.0

Values = Mapping[str, Value]


def importance(
    items: Sequence[tuple[str, float]], *, model: str = "", width: float = USUAL
) -> Scene:
    """Return the bar chart of the importance of a model's features.

    Parameters
    ----------
    items
        Features with their importance as shares of 1, the largest first.
    model
        Its name, such as ``xgb``.
    width
        Of the picture [px].
    """
    known = [(name, share) for name, share in items if share > 0][:MOST_BARS]
    shown = [(words_of(name), share) for name, share in known]
    rows: list[list[Cell]] = [[words_of(name), round(share, 4), name] for name, share in known]
    rest = sum(share for _, share in items) - sum(share for _, share in shown)
    if rest > 1e-3:
        shown.append((f"the other {len(items) - len(shown)} together", rest))
        rows.append([shown[-1][0], round(rest, 4), ""])
    marks = share_bars(shown, width, _TOP) or [text(10, 20, "the model has learned nothing yet")]
    said = f"The model {model}".rstrip()
    names = "; ".join(f"{name} ({share:.0%})" for name, share in shown[:3])
    return {
        "title": "What the model looks at",
        "summary": f"{said} decides mostly by these features: {names}."
        if names
        else f"{said} has learned nothing yet.",
        "how_to_read": "the longer a bar, the more of the model's decisions depend on that "
        "feature. The bar does not show in which direction: choose a trial to see that.",
        "width": width,
        "height": _TOP + max(bars_height([name for name, _ in shown], width), ROW_PX) + 8,
        "marks": marks,
        "table": {
            "columns": ["feature", "share of the decisions", _COLUMN],
            "rows": rows,
        },
    }


def contributions(
    of: Explanation,
    label: str,
    *,
    values: Values | None = None,
    trial_s: float | None = None,
    width: float = USUAL,
) -> Scene:
    """Return the bar chart of what each feature of a candidate adds to its prediction.

    Parameters
    ----------
    of
        The explanation of its point; the successful trials are its reference.
    label
        Its name: ``trial 12``.
    values
        Its config, for the features that are knobs.
    trial_s
        The time of a call in its trial [s]; None if it failed or was not tried.
    width
        Of the picture [px].
    """
    items, table = _shown(of.columns, of.parts, (values or {},))
    base = 2.0**-of.shared
    said = f"The model as it is now predicts {format_seconds(of.predicted_s)} for {label}"
    if trial_s is not None:
        said += f", which took {format_seconds(trial_s)} in its trial"
    return {
        "title": f"Why {label}",
        "summary": f"{said}; the average prediction for the successful trials is "
        f"{format_seconds(base)}.",
        "how_to_read": "each bar is a feature of this candidate. To the right, it makes the "
        "prediction faster than the average of the successful trials; to the left, slower. The "
        f"prediction is this average with all factors applied. {NOW}",
        "width": width,
        "height": _height(items, width),
        "marks": _bars(items, width),
        "table": {"columns": ["feature", "value", "makes it", _COLUMN], "rows": table},
    }


def why_before(
    a: Explanation,
    b: Explanation,
    labels: tuple[str, str],
    *,
    values: tuple[Values, Values] = ({}, {}),
    trial_s: tuple[float | None, float | None] = (None, None),
    width: float = USUAL,
) -> Scene:
    """Return the bar chart of the features that make one prediction faster than another.

    Parameters
    ----------
    a, b
        The explanations of their points, by the same model.
    labels
        Their names.
    values
        Their configs.
    trial_s
        The times of a call in their trials [s]; None if one failed or was not tried.
    width
        Of the picture [px].
    """
    parts = a.against(b)
    items, table = _shown(a.columns, parts, values)
    return {
        "title": f"Why {labels[0]} before {labels[1]}",
        "summary": _before(a, b, labels, trial_s),
        "how_to_read": "each bar is a feature. To the right, it makes A faster than B; to the "
        "left, slower. Features of equal effect have no bar. The product of all factors is the "
        f"predicted ratio. {NOW}",
        "width": width,
        "height": _height(items, width),
        "marks": _bars(items, width),
        "table": {
            "columns": ["feature", "value of A", "value of B", "makes A", _COLUMN],
            "rows": table,
        },
    }


def _before(
    a: Explanation,
    b: Explanation,
    labels: tuple[str, str],
    trial_s: tuple[float | None, float | None],
) -> str:
    """Return both predictions with their ratio, and both times of the trials with theirs."""
    first, second = labels
    text = (
        f"The model as it is now predicts {format_seconds(a.predicted_s)} for {first} (A) and "
        f"{format_seconds(b.predicted_s)} for {second} (B): A is "
        f"{factor(math.log2(b.predicted_s / a.predicted_s))}."
    )
    if None in trial_s:
        return text
    took_a, took_b = (seconds or 0.0 for seconds in trial_s)
    return (
        f"{text} In their trials they took {format_seconds(took_a)} and {format_seconds(took_b)}: "
        f"A was {factor(math.log2(took_b / took_a))}."
    )


def _bars(items: Sequence[tuple[str, float]], width: float) -> list[Mark]:
    if not items:
        return [text(10, 24, "no feature makes a difference")]
    ends = [text(width * NAME_SHARE, 14, "slower"), text(width - 50, 14, "faster")]
    return [*diverging_bars(items, width, _TOP + 14), *ends]


def _height(items: Sequence[tuple[str, float]], width: float) -> float:
    return _TOP + 14 + max(bars_height([name for name, _ in items], width), ROW_PX) + 8


def _shown(
    columns: Sequence[str], parts: Sequence[float], values: Sequence[Values]
) -> tuple[list[tuple[str, float]], list[list[str | int | float | None]]]:
    """Return the most important features as bars and table rows; the rest is summed in one."""
    order = sorted(range(len(parts)), key=lambda n: (-abs(parts[n]), columns[n]))
    order = [n for n in order if abs(parts[n]) > _LEAST_PART]
    shown, rest = order[:MOST_BARS], order[MOST_BARS:]
    items = [(_named(columns[n], values), parts[n]) for n in shown]
    rows: list[list[str | int | float | None]] = [
        [
            words_of(columns[n]),
            *(_value(columns[n], each) for each in values),
            factor(parts[n]),
            columns[n],
        ]
        for n in shown
    ]
    if rest:
        together = sum(parts[n] for n in rest)
        name = f"the other {len(rest)} together"
        items.append((name, together))
        rows.append([name, *("" for _ in values), factor(together), ""])
    return items, rows


def _named(column: str, values: Sequence[Values]) -> str:
    texts = [_value(column, each) for each in values]
    if not any(texts):
        return words_of(column)
    return f"{column} = {texts[0]}" if len(set(texts)) == 1 else f"{column}: {' | '.join(texts)}"


def _value(column: str, values: Values) -> str:
    """Return the knob's value if the feature is a knob, else ''."""
    return value_text(values[column]) if column in values else ""
