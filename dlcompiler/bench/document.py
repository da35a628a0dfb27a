"""Measure works and tables, and write the results as one JSON document."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from dlcompiler.bench.contest import Bench, Settings
from dlcompiler.bench.goals import judge
from dlcompiler.bench.machine import memory_bandwidth
from dlcompiler.bench.page import heading, line, page, threads_text, verdict_text
from dlcompiler.bench.peers import versions
from dlcompiler.bench.results import SCHEMA_VERSION, Result
from dlcompiler.bench.suites import Table, tables_of
from dlcompiler.bench.works import Work
from dlcompiler.errors import UserError
from dlcompiler.input_files import read_regular
from dlcompiler.json_text import JsonError, parse
from dlcompiler.target.detect import available_cores

Say = Callable[[str], None]
"""Prints a line of progress."""


def measure_works(works: Iterable[Work], settings: Settings, say: Say) -> dict[str, Any]:
    """Measure works; return the document."""
    say(heading())
    bandwidth = memory_bandwidth()
    with Bench(settings) as bench:
        rows = []
        for work in works:
            for result in bench.measure(work):
                rows.append(_row(result, bandwidth))
                say(line(rows[-1]))
    return {**head(settings), "results": rows}


def measure_tables(tables: Sequence[Table], settings: Settings, say: Say) -> dict[str, Any]:
    """Measure tables and judge them; return the document."""
    rows: list[dict[str, Any]] = []
    judged = []
    bandwidth = memory_bandwidth()
    for table in tables:
        own = settings_for(table, settings)
        if table.on_all_cores and own.threads == 1:
            say(f"\n{table.title}: not measured, there is one core")
            continue
        say(f"\n{table.title}, {threads_text(own.threads)}\n{heading()}")
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
    return {**head(settings), "results": rows, "tables": judged}


def _row(result: Result, bandwidth: float) -> dict[str, Any]:
    row = result.to_json()
    rate = row.get("gigabytes_per_second")
    return {**row, "of_bandwidth": None if rate is None else rate / bandwidth}


def check_mergeable(
    old: Mapping[str, Any], tables: Sequence[Table], peers: Sequence[str], cpu: str
) -> None:
    """Refuse to add tables to a document whose remaining tables would not be comparable.

    Parameters
    ----------
    old : mapping
        The document.
    tables : sequence of Table
        What is to be measured.
    peers : sequence of str
        Names of the libraries to compare with.
    cpu : str
        The processor, as of the document's ``machine``; what follows a ``;`` does not count.

    Raises
    ------
    UserError
        Other tables were measured on another processor, or beside other versions of the peers.
    """
    if {table["name"] for table in old["tables"]} <= {table.name for table in tables}:
        return
    now = {
        "version": SCHEMA_VERSION,
        "peer_versions": versions(peers),
        "cpu": cpu.partition(";")[0],
    }
    then = {**old, "cpu": old["machine"]["cpu"].partition(";")[0]}
    for fact, value in now.items():
        if then.get(fact) != value:
            raise UserError(
                "bench --save", f"the other tables of the file have another {fact}",
                got=then.get(fact), expected=value,
                hint="measure all tables, or save these to another file",
            )  # fmt: skip


def read_json(path: Path, operation: str) -> Any:
    """Read a file of JSON.

    Raises
    ------
    UserError
        It cannot be read.
    """
    try:
        return parse(read_regular(path))
    except (OSError, JsonError) as error:
        raise UserError(operation, "cannot be read", got=str(error)) from None


def read_document(path: Path, operation: str = "bench --page") -> dict[str, Any]:
    """Read a document of tables that `serialised` wrote.

    Raises
    ------
    UserError
        It cannot be read, or is something else.
    """
    document = read_json(path, operation)
    if not isinstance(document, dict) or not {"tables", "results", "machine"} <= document.keys():
        raise UserError(
            operation, "not a document of tables", got=str(path),
            hint="dlcompiler bench --suite paper --save FILE writes one",
        )  # fmt: skip
    try:  # a document that can be merged and shown is complete
        str(document["machine"]["cpu"]).partition(";")
        page(merged(document, document))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise UserError(
            operation, "the document is damaged, or of another version",
            got=f"{type(error).__name__}: {error}",
        ) from error  # fmt: skip
    return document


def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document `new` with the tables of `old` that it lacks."""
    names = {table["name"] for table in new["tables"]}
    tables = [*(t for t in old["tables"] if t["name"] not in names), *new["tables"]]
    order = [table.name for table in tables_of("paper")]
    tables.sort(key=lambda table: order.index(table["name"]) if table["name"] in order else -1)
    rows = [*(r for r in old["results"] if r["table"] not in names), *new["results"]]
    return {**new, "tables": tables, "results": rows}


def settings_for(table: Table, settings: Settings) -> Settings:
    """Return the settings for a table."""
    threads = available_cores() if table.on_all_cores else settings.threads
    is_tuned = settings.is_tuned and table.is_tuned
    judged_only = settings.judged_only or not table.is_tuned or table.on_all_cores
    return replace(settings, threads=threads, is_tuned=is_tuned, judged_only=judged_only)


def head(settings: Settings) -> dict[str, Any]:
    """Return the version, date, threads and peers of a document."""
    return {
        "version": SCHEMA_VERSION,
        "date": _today(),
        "threads": settings.threads,
        "peer_versions": versions(settings.peers),
    }


def serialised(document: Mapping[str, Any]) -> str:
    """Return a document as JSON, a row to a line and numbers with six digits."""
    parts = []
    for name, value in _rounded(document).items():
        if isinstance(value, list):
            rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in value)
            parts.append(f"{json.dumps(name)}: [\n{rows}\n]")
        else:
            parts.append(f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}")
    return "{" + ",\n".join(parts) + "}\n"


def _rounded(value: Any) -> Any:
    match value:
        case float():
            return float(f"{value:.6g}")
        case dict():
            return {name: _rounded(part) for name, part in value.items()}
        case list() | tuple():
            return [_rounded(part) for part in value]
    return value


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def has_wrong_results(document: Mapping[str, Any]) -> bool:
    """Tell whether a result was not verified."""
    return any(row["verified"] is False for row in document["results"])
