"""``dlcompiler db``: inspect, merge, check and prune databases of tuning records."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from dlcompiler.autotune import (
    Imported,
    Record,
    RecordStore,
    export_autotvm,
    export_records,
    import_autotvm,
    import_records,
    write_line,
)
from dlcompiler.autotune.records.summary import Group, groups
from dlcompiler.cli.command import Command, add_overwrite
from dlcompiler.errors import UserError
from dlcompiler.output_files import Rules, check_output, is_sqlite
from dlcompiler.runtime.timing import format_seconds
from dlcompiler.terminal import show


def _list(args: argparse.Namespace) -> int:
    """Print the contents of the database, a line for each workload on each machine."""
    with RecordStore(args.db, is_read_only=True) as store:
        found = groups(store.records())
        _warn(store)
    if args.json:
        print(json.dumps([_described(group) for group in found], indent=1))
        return 0
    for group in found:
        best = _time_of(group.best) if group.best else "none"
        facts = f"  best {best}; {_counts_of(group)}; {group.runs} runs"
        show(str(group.workload), f"  {group.target}", facts)
    show(f"{sum(sum(group.counts.values()) for group in found)} records")
    return 0


def _best(args: argparse.Namespace) -> int:
    """Print the fastest config of each workload on each machine."""
    with RecordStore(args.db, is_read_only=True) as store:
        found = [group for group in groups(store.records()) if args.only in str(group.workload)]
        _warn(store)
    best = [group.best for group in found if group.best is not None]
    if not best:
        text = f" of {args.only!r}" if args.only else ""
        raise UserError("db best", f"no config{text} was measured", got=args.db)
    if args.json:
        print(json.dumps([record.to_json() for record in best], indent=1))
        return 0
    for record in best:
        facts = f"  {_time_of(record)}: {record.describe()}"
        show(str(record.workload), f"  {record.target}", facts)
    return 0


def _counts_of(group: Group) -> str:
    """Return how many records of a group have which outcome."""
    return ", ".join(f"{count} {name}" for name, count in group.counts.items())


def _time_of(record: Record) -> str:
    """Return the time of a record, with whether it was measured or simulated, and on what."""
    found = record.provenance
    label = found.kind if found.on == record.target else str(found)  # its target stands above
    return f"{format_seconds(record.result.seconds or 0.0)} {label}"


def _merge(args: argparse.Namespace) -> int:
    """Add the records of other databases, or of files of JSON lines."""
    return _take_in(args.db, args.files)


def _import(args: argparse.Namespace) -> int:
    """Add the records of files of JSON lines; exit with 1 if lines were left out."""
    return _take_in(args.db, args.files, import_autotvm if args.autotvm else import_records)


def _take_in(
    db: str,
    files: Sequence[str],
    read: Callable[[RecordStore, str], Imported] = import_records,
) -> int:
    for name in files:
        if not Path(name).is_file():
            raise UserError("db", "there is no such file", got=name)
    status = 0
    with RecordStore(db) as store:
        for name in files:
            if is_sqlite(Path(name)):
                with RecordStore(name, is_read_only=True) as other:
                    records = other.records()
                    added = store.add(records)
                    show(f"{name}: {added} records added, {len(records) - added} known already")
                    status |= _warn(other)
            else:
                report = read(store, name)
                show(f"{name}: {str(report).splitlines()[0]}")
                for line in report.bad:
                    show(f"{name}: {line}", file=sys.stderr)
                status |= bool(report.bad)
    return status


def _prune(args: argparse.Namespace) -> int:
    """Keep the fastest records of each workload on each machine; without --yes, list the others."""
    if args.keep < 1:
        raise UserError("db prune", "--keep is not a positive number", got=args.keep)
    _check_exists(args.db)
    with RecordStore(args.db, is_read_only=not args.yes) as store:
        slower, before = store.prunable(args.keep), len(store)
        unreadable = len(store.unreadable)
        _warn(store)
        for group in groups(slower):
            show(str(group.workload), f"  {group.target}", f"  {_counts_of(group)}")
        if args.yes:
            show(f"{store.prune(args.keep)} records deleted, {len(store)} kept")
        else:
            count = len(slower) + unreadable
            show(f"{count} records would be deleted, {before - count} kept: --yes deletes them")
    return 0


def _export(args: argparse.Namespace) -> int:
    """Write all records as JSON lines."""
    with RecordStore(args.db, is_read_only=True) as store:
        if args.autotvm:
            check_output(args.file, Rules(sources=(args.db,)))
            count = export_autotvm(store.records(), args.file)
        elif args.file == "-":
            _print_lines(store.records())
            return _warn(store)
        else:
            count = export_records(store, args.file, overwrite=args.overwrite)
        show(f"{count} records written to {args.file}")
        return _warn(store)


def _print_lines(records: Iterable[Record]) -> None:
    for record in records:
        show(write_line(record))


def _check(args: argparse.Namespace) -> int:
    """Print the problems of the database; exit with 1 if there are any."""
    with RecordStore(args.db, is_read_only=True) as store:
        problems = store.check()
        for problem in problems:
            show(f"{args.db}: {problem}")
        if not problems:
            show(f"{args.db}: {len(store)} records, all is well")
    return int(bool(problems))


def _check_exists(db: str) -> None:
    if not Path(db).exists():
        raise UserError(f"open the records in {db}", "there is no such file")


def _warn(store: RecordStore) -> int:
    """Print the unreadable rows to standard error; return 1 if there are any."""
    for text in store.unreadable:
        show(f"{store.path}: {text}", file=sys.stderr)
    return int(bool(store.unreadable))


def _described(group: Group) -> dict[str, Any]:
    return {
        "workload": group.workload.to_json(),
        "target": group.target,
        "counts": dict(group.counts),
        "runs": group.runs,
        "best_seconds": group.best.result.seconds if group.best else None,
        "kind": group.kind,
        "best_on": group.best.provenance.on if group.best else None,
    }


def run(args: argparse.Namespace) -> int:
    """Run the action that the arguments name."""
    act: Callable[[argparse.Namespace], int] = args.act
    return act(args)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="action")

    def action(name: str, act: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        text = (act.__doc__ or "").rstrip(".")
        sub = actions.add_parser(name, help=text[:1].lower() + text[1:], description=text)
        sub.add_argument("db", metavar="FILE", help="the database")
        sub.set_defaults(act=act)
        return sub

    for name, act in (("list", _list), ("best", _best)):
        sub = action(name, act)
        sub.add_argument("--json", action="store_true", help="print JSON")
        if act is _best:
            sub.add_argument("--only", default="", metavar="TEXT", help="workloads that have it")
    for name, act in (("merge", _merge), ("import", _import)):
        sub = action(name, act)
        sub.add_argument("files", nargs="+", metavar="FROM", help="database or log with records")
        if act is _import:
            sub.add_argument("--autotvm", action="store_true", help="logs of AutoTVM 0.2")
    sub = action("prune", _prune)
    sub.add_argument("--keep", type=int, default=16, help="how many of each; 16 by default")
    sub.add_argument("--yes", action="store_true", help="delete the others")
    sub = action("export", _export)
    sub.add_argument("file", metavar="TO", help="a file, or - for standard output")
    sub.add_argument("--autotvm", action="store_true", help="add to a log of AutoTVM 0.2")
    add_overwrite(sub)
    action("check", _check)


COMMAND = Command("list, merge, prune and check tuning records", _add_arguments, run)
