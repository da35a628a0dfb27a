"""Tables for terminals, and texts that fit where there is little room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dlcompiler.schedule import Schedule
from dlcompiler.terminal import escaped
from dlcompiler.views.loops.loop_tree import AXIS_WORDS, LINES, LoopTree, Row, loop_tree

if TYPE_CHECKING:
    from dlcompiler.views.render.scene import Scene

LOOP_COLUMNS = ("loop", "extent", "kind", "axis", "iterations", "made by")


def text_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table as text; numbers are right-aligned.

    Examples
    --------
    >>> print(text_table(("loop", "extent"), [("i", 4), ("j", 1024)]))
    loop  extent
    i          4
    j      1,024
    """
    texts = [[_cell(value) for value in row] for row in rows]
    widths = [max(len(text) for text in column) for column in zip(columns, *texts, strict=True)]
    numeric = [
        bool(rows) and all(isinstance(row[n], int | float | None) for row in rows)
        for n in range(len(columns))
    ]
    return "\n".join(
        "  ".join(
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in (columns, *texts)
    )


def scene_text(scene: Scene) -> str:
    """Return the sentence and the table of a picture as text."""
    table = text_table(scene["table"]["columns"], scene["table"]["rows"])
    return f"{escaped(scene['summary'])}\n{table}"


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else escaped(str(value))


def loop_table(schedule: Schedule) -> str:
    """Return the loop nest of a schedule as a table.

    Parameters
    ----------
    schedule
        The schedule.

    Returns
    -------
    str
        A line for each stage, loop and statement, indented by depth.
    """
    return text_table(LOOP_COLUMNS, loop_rows(loop_tree(schedule)))


def loop_rows(tree: LoopTree) -> list[tuple[object, ...]]:
    """Return the rows of a loop tree under `LOOP_COLUMNS`."""
    return [_loop_row(row) for row in tree["rows"]]


def _loop_row(row: Row) -> tuple[object, ...]:
    indent = "  " * row["depth"]
    if row["type"] == "stage":
        return f"{indent}{row['name']}: {row['detail']}", None, "", "", None, ""
    if row["type"] in LINES:
        return f"{indent}{row['name']}", None, "", "", None, ""
    axis = AXIS_WORDS[row["axis"]]
    return (
        f"{indent}{row['name']}", row["extent"], row["kind"], axis, row["runs"], row["made_by"],
    )  # fmt: skip


def shortened(text: str, most: float) -> str:
    """Leave out the middle of a text that has too many characters.

    Examples
    --------
    >>> shortened("a_long_name 64 B", 12), shortened("short", 12)
    ('a_lon…e 64 B', 'short')
    """
    if len(text) <= most:
        return text
    end = int(most) // 2
    return f"{text[: int(most) - end - 1]}…{text[len(text) - end :]}"
