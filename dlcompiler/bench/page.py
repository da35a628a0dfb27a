"""Format a document of measured works as lines of text, and as a Markdown page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dlcompiler.runtime.timing import format_seconds

_WIDTHS = (44, 10, 11, 9, 12, 11, 22, 9)
_COLUMNS = ("work", "row", "ours", "±", "best peer", "its time", "ratio", "of peak")


def heading() -> str:
    """Return the headings of the columns of `line`."""
    return _columns(_COLUMNS)


def line(row: Mapping[str, Any]) -> str:
    """Return a row of a document as a line of text."""
    return _columns(cells(row))


def cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of a row of a document, in the columns of `heading`."""
    name = row.get("label", row["work"])
    if row["ours_seconds"] is None:
        first = row["reason"].partition("\n")[0]
        problem = "WRONG: " if row["verified"] is False else "not measured: "
        return name, row["row"], problem + first
    best = row["best_peer"]
    ours = format_seconds(row["ours_seconds"]), format_seconds(row["ours_spread_seconds"])
    if best is None:
        return name, row["row"], *ours, "none", "", "", _fraction(row)
    low, high = row["interval"]
    # Two decimals, not `format_ratio`: the interval says how many digits are known.
    ratio = f"{row['ratio']:.2f} [{low:.2f}, {high:.2f}]"
    return name, row["row"], *ours, best, format_seconds(row["peers"][best]), ratio, _fraction(row)


def _fraction(row: Mapping[str, Any]) -> str:
    """Return a row's memory rate, or its fraction of the FMA peak, as text."""
    if row["bound_by"] == "memory":
        return f"{row['gigabytes_per_second']:.1f} GB/s"
    return f"{row['of_fma_peak']:.2f}"


def _columns(values: Sequence[str]) -> str:
    if len(values) < len(_COLUMNS):
        return f"{values[0]:<{_WIDTHS[0]}} {values[1]:<{_WIDTHS[1]}} {values[2]}"
    texts = []
    for n, (value, width) in enumerate(zip(values, _WIDTHS, strict=True)):
        texts.append(value.ljust(width) if n in (0, 1, 4) else value.rjust(width))
    return " ".join(texts).rstrip()


def verdict_text(verdict: Mapping[str, Any]) -> str:
    """Return whether a goal is reached, in a line."""
    answer = "yes" if verdict["holds"] else "NO"
    got = "" if verdict["got"] is None else f": {verdict['got']:.2f}"
    note = f" ({verdict['note']})" if verdict["note"] else ""
    return f"{answer:<3} {verdict['text']}{got}{note}"


def threads_text(count: int) -> str:
    """Return a number of threads in words."""
    return "one thread" if count == 1 else f"{count} threads"


SHOWN_OF_HELDOUT = 6
"""Number of rows that a page shows of heldout shapes: those with the smallest ratios."""

_INTRODUCTION = """\
# Benchmarks

Written by `make bench`; `docs/benchmarks` has all numbers. [BENCHMARKS.md](BENCHMARKS.md)
has the tables of a processor with AVX-512, [BENCHMARKS_AVX2.md](BENCHMARKS_AVX2.md) those of one
with AVX2.

Each result is verified first, within a bound that follows from the arithmetic. We and each peer
then run in alternation in one process; *ratio* is the best peer's time divided by ours, round by
round, as a median with its 95 % interval: above 1, ours is faster. *plain*: operands in the
caller's layout, packing is part of our time. *prepacked*: weights are known ahead to everyone.
Targets read the row in bold. *of peak* is the fraction of the FMA peak, measured in the same
rounds, that the multiplications and additions of the definition make: minimal filtering
(`conv2d_winograd`) does with fewer, within an error bound of its own, and may exceed 1. Works that
move memory show their rate instead, which is above the memory's where caches hold the data.
"""


def page(document: Mapping[str, Any]) -> str:
    """Return a document of tables as Markdown."""
    facts = {"date": document["date"], **document["machine"]}
    peers = document["peer_versions"].items()
    facts["peers"] = ", ".join(f"{name} {version}" for name, version in peers)
    parts = [_INTRODUCTION, "\n".join(f"- {name}: {value}" for name, value in facts.items())]
    for table in document["tables"]:
        rows = [row for row in document["results"] if row["table"] == table["name"]]
        parts.append(f"\n## {table['title']}, {threads_text(table['threads'])}\n")
        if table["date"] != document["date"]:
            parts.append(f"Measured on {table['date']}.\n")
        parts.append(
            "\n".join(f"- {verdict_text(v).replace('NO ', '**NO**')}" for v in table["goals"])
        )
        parts.append(_markdown(rows, table["name"]))
    return "\n".join(parts) + "\n"


def _markdown(rows: Sequence[Mapping[str, Any]], name: str) -> str:
    shown = list(rows)
    text = ""
    if name.startswith("heldout"):
        shown = sorted(rows, key=lambda row: row["ratio"] or 0.0)[:SHOWN_OF_HELDOUT]
        text = f"\nThe {len(shown)} of {len(rows)} with the smallest ratios:\n"
    columns = [*_COLUMNS, "operator"]
    columns += ["speed-up"] if any(row.get("speedup") for row in rows) else []
    lines = [f"\n| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    for row in shown:
        values = list(cells(row))
        values += [""] * (len(_COLUMNS) - len(values))
        if row["judged"]:
            values[1] = f"**{values[1]}**"
        values.append(row.get("operator", ""))
        if row.get("speedup"):
            values.append(f"{row['speedup']:.2f} of {row['fma_peak_speedup']:.2f}")
        lines.append(f"| {' | '.join(values)} |")
    return text + "\n".join(lines)
