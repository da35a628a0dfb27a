"""Static picture of a schedule's states as a version graph."""

from __future__ import annotations

from dlcompiler.views.history.tree import HistoryRow, HistoryTree
from dlcompiler.views.render.colors import HUES
from dlcompiler.views.render.scene import Mark, Scene

_LANE, _ROW, _LETTER = 18.0, 24.0, 7.0


def history_scene(tree: HistoryTree) -> Scene:
    """Return the static picture of a history.

    Parameters
    ----------
    tree
        Its view model.

    Returns
    -------
    Scene
        A dot for each state with the step that led to it, a line from each state to the next.
    """
    rows = tree["rows"]
    places = {row["id"]: (_x(row), _y(n)) for n, row in enumerate(rows)}
    marks: list[Mark] = [
        _line(places[row["parent"]], places[row["id"]]) for row in rows if row["parent"] is not None
    ]
    words = max((row["lane"] for row in rows), default=0) * _LANE + 2 * _LANE
    for n, row in enumerate(rows):
        marks += _state(row, n, words)
    widest = max((len(_text(row)) for row in rows), default=0)
    return {
        "title": "History",
        "summary": _summary(rows),
        "how_to_read": "time runs down. Each dot is a state; beside it stands the step that led to "
        "it. A line that turns right is a branch. The large filled dot is the current state; the "
        "other filled dots are on the way to it.",
        "width": words + widest * _LETTER + _LANE,
        "height": len(rows) * _ROW + 4,
        "marks": marks,
        "table": {
            "columns": ["state", "step", "name", "results", "note"],
            "rows": [
                [row["id"][:8], row["step"], row["name"], _known(row), row["note"]] for row in rows
            ],
        },
    }


def _x(row: HistoryRow) -> float:
    return row["lane"] * _LANE + _LANE / 2


def _y(number: int) -> float:
    return number * _ROW + _ROW / 2


def _line(start: tuple[float, float], end: tuple[float, float]) -> Mark:
    (x, y), (x2, y2) = start, end
    bend = f"L{x:g} {y2 - 8:g}Q{x:g} {y2:g} {x + 8:g} {y2:g}" if x != x2 else ""
    return {"shape": "path", "role": "edge", "d": f"M{x:g} {y:g}{bend}L{x2:g} {y2:g}"}


def _state(row: HistoryRow, number: int, words: float) -> list[Mark]:
    dot: Mark = {"shape": "circle", "role": "bar", "x": _x(row), "y": _y(number),
                 "r": 6 if row["is_here"] else 4, "title": row["label"],
                 "fill": HUES[0] if row["is_on_path"] else "none"}  # fmt: skip
    text: Mark = {"shape": "text", "role": "name" if row["is_here"] else "label", "x": words,
                  "y": _y(number) + 4, "text": _text(row)}  # fmt: skip
    return [dot, text]


def _text(row: HistoryRow) -> str:
    """Return the words beside a dot; all that is known of the state stands in the table."""
    problems = [kind for kind in ("wrong", "failed") if kind in row["notes"]]
    time = row["time"]
    if not time and row["predicted"] is not None:
        time = f"{row['predicted']['time']} predicted"
    parts = [row["step"], row["name"] and f"“{row['name']}”", time, *problems]
    return "   ".join([part for part in parts if part])


def _known(row: HistoryRow) -> str:
    known = [f"{kind} {text}" for kind, text in row["notes"].items()]
    if row["predicted"] is not None:
        known.append(row["predicted"]["label"])
    return "; ".join(known)


def _summary(rows: list[HistoryRow]) -> str:
    here = next((row for row in rows if row["is_here"]), None)
    branches = sum(row["lane"] > 0 for row in rows)
    states = f"{len(rows)} state" + ("" if len(rows) == 1 else "s")
    where = f"; the current one: {here['name'] or here['step']}" if here else ""
    return f"{states}{f', {branches} of them on branches' if branches else ''}{where}."
