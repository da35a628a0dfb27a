"""Measured tables as one JSON document, and that document as text and as a page."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from dlcompiler.bench.contest import Bench, Settings
from dlcompiler.bench.goals import judge
from dlcompiler.bench.machine import memory_bandwidth
from dlcompiler.bench.peers import versions
from dlcompiler.bench.results import SCHEMA_VERSION, Result
from dlcompiler.bench.suites import Table, tables_of
from dlcompiler.bench.works import Work
from dlcompiler.errors import UserError
from dlcompiler.runtime.timing import format_seconds
from dlcompiler.target.detect import available_cores

Say = Callable[[str], None]
"""Prints a line as soon as it is known."""


def measure_works(works: Iterable[Work], settings: Settings, say: Say) -> dict[str, Any]:
    """Measure works; returns the document."""
    say(heading())
    bandwidth = memory_bandwidth()
    with Bench(settings) as bench:
        rows = []
        for work in works:
            for result in bench.measure(work):
                rows.append(_row(result, bandwidth))
                say(line(rows[-1]))
    return {**_head(settings), "results": rows}


def measure_tables(tables: Sequence[Table], settings: Settings, say: Say) -> dict[str, Any]:
    """Measure tables and judge them; returns the document."""
    rows: list[dict[str, Any]] = []
    judged = []
    bandwidth = memory_bandwidth()
    for table in tables:
        own = settings_for(table, settings)
        say(f"\n{table.title}, {_threads(own.threads)}\n{heading()}")
        decisive: dict[str, Result] = {}
        with Bench(own) as bench:
            for label, work in table.works.items():
                for result in bench.measure(work):
                    if result.row == work.judged:
                        decisive[label] = result
                    row = {"table": table.name, "label": label, **_row(result, bandwidth)}
                    rows.append(row)
                    say(line(rows[-1]))
        verdicts = [asdict(verdict) for verdict in judge(table.goals, decisive)]
        facts = {"name": table.name, "title": table.title, "threads": own.threads}
        judged.append({**facts, "date": _today(), "goals": verdicts})
        for verdict in verdicts:
            say(f"  {verdict_text(verdict)}")
    return {**_head(settings), "results": rows, "tables": judged}


def _row(result: Result, bandwidth: float) -> dict[str, Any]:
    row = result.to_json()
    rate = row.get("gigabytes_per_second")
    return {**row, "of_bandwidth": None if rate is None else rate / bandwidth}


def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document with the tables of another one that it does not have itself.

    Raises
    ------
    UserError
        They were measured on different processors, or beside other versions of the peers.
    """
    for fact in ("version", "peer_versions"):
        if old.get(fact) != new[fact]:
            raise UserError(
                "bench --save", f"the saved document has another {fact}", got=old.get(fact),
                expected=new[fact], hint="save all tables anew, or to another file",
            )  # fmt: skip
    names = {table["name"] for table in new["tables"]}
    tables = [*(t for t in old["tables"] if t["name"] not in names), *new["tables"]]
    order = [table.name for table in tables_of("paper")]
    tables.sort(key=lambda table: order.index(table["name"]) if table["name"] in order else -1)
    rows = [*(r for r in old["results"] if r["table"] not in names), *new["results"]]
    return {**new, "tables": tables, "results": rows}


def settings_for(table: Table, settings: Settings) -> Settings:
    """Return the settings that a table asks for."""
    threads = available_cores() if table.on_all_cores else settings.threads
    is_tuned = settings.is_tuned and table.is_tuned
    judged_only = settings.judged_only or not table.is_tuned or table.on_all_cores
    return Settings(settings.peers, threads, is_tuned, judged_only, settings.limits)


def _head(settings: Settings) -> dict[str, Any]:
    return {
        "version": SCHEMA_VERSION,
        "date": _today(),
        "threads": settings.threads,
        "peer_versions": versions(settings.peers),
    }


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def has_wrong_results(document: Mapping[str, Any]) -> bool:
    """Tell whether a result was not verified."""
    return any(row["verified"] is False for row in document["results"])


# -- text ---------------------------------------------------------------------------------------

_WIDTHS = (44, 10, 11, 9, 12, 11, 22, 9)
_COLUMNS = ("work", "row", "ours", "±", "best peer", "its time", "ratio", "of peak")


def heading() -> str:
    """Return the line above `line`s."""
    return _columns(_COLUMNS)


def line(row: Mapping[str, Any]) -> str:
    """Return a row of a document as a line of text."""
    return _columns(cells(row))


def cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what stands under `heading`, for a row of a document."""
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
    ratio = f"{row['ratio']:.2f} [{low:.2f}, {high:.2f}]"
    return name, row["row"], *ours, best, format_seconds(row["peers"][best]), ratio, _fraction(row)


def _fraction(row: Mapping[str, Any]) -> str:
    """Return how close to the machine's limit a row is."""
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


def _threads(count: int) -> str:
    return "one thread" if count == 1 else f"{count} threads"


# -- the page -----------------------------------------------------------------------------------

SHOWN_OF_UNLISTED = 6
"""Rows of a table of unlisted shapes that a page shows: the slowest beside the peers."""

_INTRODUCTION = """\
# Benchmarks

Written by `make bench`; [benchmarks/paper.json](benchmarks/paper.json) has all numbers. Each result
is verified first, within a bound that follows from the arithmetic. We and each peer then run in
alternation in one process; *ratio* is the best peer's time divided by ours, round by round, as a
median with its 95 % interval: above 1, ours is faster. *plain*: operands in the caller's layout,
packing is part of our time. *prepacked*: weights are known ahead to everyone. Targets read the row
in bold. *of peak* is the fraction of the FMA peak, measured in the same rounds; works that move
memory show their rate instead, which is above the memory's where caches hold the data.
"""


def page(document: Mapping[str, Any]) -> str:
    """Return a document of tables as Markdown."""
    facts = {"date": document["date"], **document["machine"]}
    peers = document["peer_versions"].items()
    facts["peers"] = ", ".join(f"{name} {version}" for name, version in peers)
    parts = [_INTRODUCTION, "\n".join(f"- {name}: {value}" for name, value in facts.items())]
    for table in document["tables"]:
        rows = [row for row in document["results"] if row["table"] == table["name"]]
        parts.append(f"\n## {table['title']}, {_threads(table['threads'])}\n")
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
    if name.startswith("unlisted"):
        shown = sorted(rows, key=lambda row: row["ratio"] or 0.0)[:SHOWN_OF_UNLISTED]
        text = f"\nThe {len(shown)} of {len(rows)} with the smallest ratios:\n"
    columns = [*_COLUMNS, "speed-up"] if any(row.get("speedup") for row in rows) else _COLUMNS
    lines = [f"\n| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    for row in shown:
        values = list(cells(row))
        values += [""] * (len(_COLUMNS) - len(values))
        if row["judged"]:
            values[1] = f"**{values[1]}**"
        if row.get("speedup"):
            values.append(f"{row['speedup']:.2f} of {row['fma_peak_speedup']:.2f}")
        lines.append(f"| {' | '.join(values)} |")
    return text + "\n".join(lines)
