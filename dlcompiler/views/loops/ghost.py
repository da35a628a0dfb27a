"""Compare the loop nest after a step with the nest before it, row by row."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Literal, TypedDict

from dlcompiler.views.loops.loop_tree import LoopTree, Row, RowType

MOST_ROWS = 60
"""More rows than this are cut: the picture is small, and what changes stands near its top."""

Change = Literal["same", "added", "removed", "changed", "moved"]


class GhostRow(TypedDict):
    """A row of the nest before or after the step, with its change."""

    key: str
    type: RowType
    depth: int
    """Depth in the row's own nest; a removed row keeps the depth that it had."""
    name: str
    extent: int | str | None
    kind: str
    colors: list[str]
    change: Change
    was: str
    """For a changed row, its old values: ``was serial``, ``was 64``."""


def ghost_rows(before: LoopTree, after: LoopTree) -> list[GhostRow]:
    """Merge the rows of two nests: all rows of `after`, and the rows that only `before` has.

    Loop nests in which nothing changes are left out.

    Parameters
    ----------
    before, after
        The nests.

    Returns
    -------
    list of GhostRow
        In the order of the program; empty when nothing changes.
    """
    rows = list(_merged(before["rows"], after["rows"]))
    kept: list[GhostRow] = []
    nest: list[GhostRow] = []
    for row in [*rows, None]:
        if row is None or (row["depth"] == 0 and row["change"] != "removed"):
            kept += nest if any(each["change"] != "same" for each in nest) else []
            nest = []
        if row is not None:
            nest.append(row)
    return kept[:MOST_ROWS]


def _merged(before: Sequence[Row], after: Sequence[Row]) -> Iterator[GhostRow]:
    old = {row["key"]: row for row in before}
    new = {row["key"] for row in after}
    left, right = ([row["key"] for row in rows] for rows in (before, after))
    codes = difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes()
    for code, start, end, first, last in codes:
        if code != "equal":
            yield from (_row(r, "removed") for r in before[start:end] if r["key"] not in new)
        for row in after[first:last]:
            known = old.get(row["key"])
            if known is None:
                yield _row(row, "added")
            elif was := _difference(known, row):
                yield _row(row, "changed", was)
            else:
                yield _row(row, "same" if code == "equal" else "moved")


def _difference(old: Row, new: Row) -> str:
    """Return the old values of a changed row, such as ``was serial, 64``; '' if nothing changed."""
    parts = []
    if old["extent"] != new["extent"]:
        parts.append(str(old["extent"]))
    if old["kind"] != new["kind"]:
        parts.append(old["kind"])
    if old["type"] == "stage" and old["detail"] != new["detail"]:
        parts.append(old["detail"])
    if old["type"] == "statement" and old["name"] != new["name"]:
        parts.append(old["name"])
    return f"was {', '.join(parts)}" if parts else ""


def _row(row: Row, change: Change, was: str = "") -> GhostRow:
    return {
        "key": row["key"],
        "type": row["type"],
        "depth": row["depth"],
        "name": f"{row['name']} {row['detail']}" if row["detail"] else row["name"],
        "extent": row["extent"],
        "kind": row["kind"],
        "colors": row["colors"],
        "change": change,
        "was": was,
    }
