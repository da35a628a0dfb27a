"""``dlcompiler bench``: compare with other libraries, time the compiler, and compare tuners."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from dlcompiler.autotune import RecordStore
from dlcompiler.autotune.pools.replay import ReplayTable
from dlcompiler.bench import (
    BENCHMARKS,
    accelerator,
    accelerator_tuning,
    bits,
    describe_machine,
    gpu,
    gpu_device,
    gpu_model,
    gpu_search,
    graphs,
    intrinsics,
    model_suite,
    offload,
    run_benchmarks,
    sweep,
    tables,
    tuning,
)
from dlcompiler.bench.contest import Settings
from dlcompiler.bench.document import (
    check_mergeable,
    has_wrong_results,
    measure_tables,
    measure_works,
    merged,
    read_document,
    read_json,
    serialised,
)
from dlcompiler.bench.live import judge_live, live_run
from dlcompiler.bench.models import Settings as ModelSettings
from dlcompiler.bench.page import page, verdict_text
from dlcompiler.bench.peers import MODEL_PEERS, REGISTRY, missing
from dlcompiler.bench.suites import COUNT, SEED, SUITES, tables_of
from dlcompiler.bench.sweep import read_sweep
from dlcompiler.bench.sweep_page import sweep_page
from dlcompiler.bench.works import GRAMMAR, form, parse_works
from dlcompiler.cli.command import Command, add_overwrite, output_rules, threads_of
from dlcompiler.cli.doctor import describe_cpu
from dlcompiler.cli.progress import stage
from dlcompiler.errors import UserError
from dlcompiler.output_files import REPLACES, Rules, check_output, make_folder, write_file
from dlcompiler.target.detect import host
from dlcompiler.terminal import show

SCHEMA_VERSION = 1


def run(args: argparse.Namespace) -> int:
    """Run the benchmarks that the arguments name; return 1 if a result was wrong."""
    if args.page is not None:
        show(*_page(list(map(Path, args.page))).removesuffix("\n").split("\n"))
        return 0
    if args.save is not None:
        _check_save(args)
    if args.measure_table:
        return _measure_tables(args)
    if args.suite in _OWN_SUITES:
        return _OWN_SUITES[args.suite](args)
    if args.works or args.suite:
        return _contest(args)
    return _benchmarks(args)


def _page(paths: Sequence[Path]) -> str:
    """Return the page of a document of tables, or of sweeps."""
    first = read_json(paths[0], "bench --page")
    if isinstance(first, dict) and first.get("suite") == "sweep":
        return sweep_page([read_sweep(path, "bench --page") for path in paths])
    if len(paths) > 1:
        raise UserError("bench --page", "several documents, but not of sweeps", got=str(paths[1]))
    return page(read_document(paths[0], "bench --page"))


def _gpu_device(args: argparse.Namespace) -> int:
    return _rows_of(args, partial(gpu_device.run_suite, target=args.device))


def _accelerator_tuning(args: argparse.Namespace) -> int:
    """Tune layers on a simulated accelerator: all of them, or those that are named."""
    run_suite = partial(
        accelerator_tuning.run_suite, layers=args.works, trials=args.trials, db=args.db
    )
    return _rows_of(args, run_suite)


def _contest(args: argparse.Namespace) -> int:
    """Measure works or a suite, and print each row as soon as it is measured."""
    if args.works and args.suite:
        raise UserError("bench", "works and --suite cannot be given together", hint="leave one out")
    settings = _settings(args)
    say = _say_nothing if args.json else _say
    works = parse_works(args.works)
    machine = _described(settings, say)
    if args.suite:
        tables = tables_of(args.suite, seed=args.seed, count=args.count or COUNT)
        if _is_merged(args):
            saved = read_document(Path(args.save), "bench --save")
            check_mergeable(saved, tables, settings.peers, machine["cpu"])
        document = measure_tables(tables, settings, say)
    else:
        document = measure_works(works, settings, say)
    document = {**document, "machine": machine}
    if args.save is not None:
        if _is_merged(args):
            document = merged(read_document(Path(args.save), "bench --save"), document)
        _save(document, args)
    if args.json:
        print(json.dumps(document))
    return _report(document)


def _peers(args: argparse.Namespace, known: Iterable[str] = REGISTRY) -> tuple[str, ...]:
    """Return the peers that are asked for; by default all that are known."""
    return tuple(known if args.peers is None else filter(None, args.peers.split(",")))


def _settings(args: argparse.Namespace) -> Settings:
    return Settings(
        peers=_peers(args),
        threads=threads_of(args.threads, "bench"),
        is_tuned=not args.untuned,
        judged_only=args.rows == "judged",
        limits={} if args.seconds is None else {"budget_s": args.seconds},
    )


def _described(settings: Settings, say: Callable[[str], None]) -> dict[str, str]:
    """Print and return the description of the machine, and print which peers are missing."""
    machine = _machine()
    for key, value in machine.items():
        say(f"{key:<26} {value}")
    for name in settings.peers:
        if name in REGISTRY and (reason := missing(name)):
            say(f"{name:<26} {reason}")
    return machine


def _sweep(args: argparse.Namespace) -> int:
    """Measure works of all families; go on with the sweep that the file of ``--save`` holds."""
    if args.works:
        raise UserError("bench", "works and --suite cannot be given together", hint="leave one out")
    given = _settings(args)
    limits = {**sweep.LIMITS, **given.limits}
    settings = replace(given, is_tuned=False, judged_only=True, has_baselines=False, limits=limits)
    path = None if args.save is None else Path(args.save)
    before = None
    if path is not None and path.is_file() and not args.overwrite:
        before = sweep.read_sweep(path)
    say = _say_nothing if args.json else _say
    document = sweep.run_suite(
        say,
        settings,
        count=args.count or sweep.COUNT,
        seed=args.seed,
        machine=_described(settings, say),
        before=before,
        keep=lambda found: None if path is None else write_file(path, serialised(found), REPLACES),
    )
    return _ended(document, args)


def _check_save(args: argparse.Namespace) -> None:
    """Check the file of ``--save`` before any measurement: the document must be writable to it."""
    if args.measure_table or not (args.works or args.suite):
        raise UserError(
            "bench --save", "this run makes no JSON document", expected="works or --suite",
            hint="--json prints figures as JSON; --into names the folder of replay tables",
        )  # fmt: skip
    make_folder(Path(args.save).parent)
    check_output(args.save, _rules_of_save(args))


def _is_merged(args: argparse.Namespace) -> bool:
    """Tell whether to merge the document into the saved one, whose other tables are kept."""
    return (
        args.save is not None
        and args.suite in (*SUITES, "sweep")
        and not args.overwrite
        and Path(args.save).is_file()
    )


def _rules_of_save(args: argparse.Namespace) -> Rules:
    return REPLACES if _is_merged(args) else output_rules(args)


def _save(document: dict[str, Any], args: argparse.Namespace) -> None:
    """Write a document to the file of ``--save``."""
    write_file(args.save, serialised(document), _rules_of_save(args))


def _measure_tables(args: argparse.Namespace) -> int:
    """Measure replay tables, one after the other; stored measurements are not repeated."""
    folder = make_folder(args.into)
    chosen = list(tables.WORKS) if "all" in args.measure_table else args.measure_table
    subjects = [tables.subject_of(text) for text in chosen]
    for subject in subjects:
        check_output(tables.path_of(folder, subject.name), output_rules(args, args.db))
    machine = _machine()
    for subject in subjects:
        path = tables.path_of(folder, subject.name)
        pool = tables.pool_of(subject)
        try:
            with RecordStore(args.db or folder / f"{subject.name}.sqlite") as store:
                table = tables.measure_table(
                    subject, store, pool, machine, points=args.points, say=_say
                )
        finally:
            pool.close()
        table.save(path)
        hits = len(table.hits())
        _say(f"{path}: {len(table.rows):,} points, {hits} within 5 % of the best; {table.best}")
    return 0


def _tuning(args: argparse.Namespace) -> int:
    """Replay tuners on tables."""
    say = _say_nothing if args.json else _say
    chosen = tuple(name for name in args.tuners.split(",") if name)
    found = tuning.load_tables(Path(args.tables))
    document = tuning.run_suite(found, say, tuners=chosen, seeds=args.seeds)
    if args.live:
        document |= _live(found, args, say)
    if args.save is not None:
        _save(document, args)
    if args.json:
        print(json.dumps(document))
    return 0


def _rows_of(args: argparse.Namespace, run_suite: Callable[[tuning.Say], dict[str, Any]]) -> int:
    """Run a suite that prints its rows and returns a document, with the works that failed."""
    say = _say_nothing if args.json else _say
    machine = _machine()
    for key, value in machine.items():
        say(f"{key:<26} {value}")
    return _ended({**run_suite(say), "machine": machine}, args)


def _ended(document: dict[str, Any], args: argparse.Namespace) -> int:
    """Save and print a document; return 1 if it lists something that failed."""
    if args.save is not None:
        _save(document, args)
    if args.json:
        print(json.dumps(document))
    for name, reason in document["failed"].items():
        show(*f"{name}: {reason}".split("\n"), file=sys.stderr)
    return int(bool(document["failed"]))


def _models(args: argparse.Namespace) -> int:
    """Measure whole models: all of the suite, or those that are named."""
    given = _settings(args)
    peers = tuple(name for name in _peers(args, MODEL_PEERS) if name in MODEL_PEERS)
    settings = ModelSettings(peers, given.threads, limits=given.limits)
    with contextlib.ExitStack() as stack:
        store = None
        if args.db is not None:
            store = RecordStore(args.db, is_read_only=True)
            stack.callback(store.close)
        run_suite = partial(
            model_suite.run_suite, settings=settings, names=args.works, db=store, stage=stage
        )
        return _rows_of(args, run_suite)


def _gpu_model(args: argparse.Namespace) -> int:
    """Judge predicted times by published ones, and by files of measured ones."""
    say = _say_nothing if args.json else _say
    document = gpu_model.run_suite(say, args.data, sample=args.sample)
    return _ended(document, args)


def _live(
    found: Mapping[str, ReplayTable], args: argparse.Namespace, say: tuning.Say
) -> dict[str, Any]:
    """Tune the workloads of the tables on this machine."""
    say("")
    runs = []
    for name, table in found.items():
        peers = _peers(args)
        runs.append(live_run(name, seed=args.seed, peers=peers, best_s=table.best.median_s))
        say(str(runs[-1]))
    verdicts = [asdict(verdict) for verdict in judge_live(runs)]
    say("")
    for verdict in verdicts:
        say(f"  {verdict_text(verdict)}")
    return {"live": [run.to_json() for run in runs], "live_goals": verdicts}


def _say(text: str) -> None:
    show(*text.split("\n"))


def _say_nothing(text: str) -> None:
    del text


def _report(document: dict[str, Any]) -> int:
    """Print all wrong results to standard error; return the exit status."""
    for row in document["results"]:
        if row["verified"] is False:
            text = f"{row['work']} ({row['row']}): {row['reason']}"
            show(*text.split("\n"), file=sys.stderr)
    return int(has_wrong_results(document))


def _benchmarks(args: argparse.Namespace) -> int:
    """Print the result of each benchmark of the compiler as soon as it is measured."""
    machine = _machine()
    chosen = args.only or list(BENCHMARKS)
    if not args.json:
        for key, value in machine.items():
            show(f"{key:<26} {value}")
        print()
    results = []
    for result in run_benchmarks(chosen):
        results.append(result)
        if not args.json:
            show(*f"{result.name:<26} {result.text}".split("\n"))
    if args.json:
        figures = [{"name": f.name, "values": f.values, "text": f.text} for f in results]
        print(json.dumps({"version": SCHEMA_VERSION, "machine": machine, "figures": figures}))
    return 0


def _machine() -> dict[str, str]:
    return {"cpu": describe_cpu(host()).replace("\n", "; "), **describe_machine()}


_OWN_SUITES: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "tuning": _tuning,
    "intrinsics": lambda args: _rows_of(args, intrinsics.run_suite),
    "bits": lambda args: _rows_of(
        args, partial(bits.run_suite, threads=threads_of(args.threads, "bench"))
    ),
    "gpu": lambda args: _rows_of(args, gpu.run_suite),
    "gpu-model": _gpu_model,
    "gpu-search": lambda args: _rows_of(args, gpu_search.run_suite),
    "gpu-device": _gpu_device,
    "graph": lambda args: _rows_of(args, graphs.run_suite),
    "accelerator": lambda args: _rows_of(
        args, partial(accelerator.run_suite, picture=args.picture)
    ),
    "accelerator-tuning": _accelerator_tuning,
    "offload": lambda args: _rows_of(args, offload.run_suite),
    "models": _models,
    "sweep": _sweep,
}
"""Suites that are no tables of works beside peers, by name."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    forms = "; ".join(form(family) for family in GRAMMAR)
    parser.add_argument("works", nargs="*", metavar="WORK", help=f"what to measure: {forms}")
    parser.add_argument(
        "--suite",
        choices=(*SUITES, *_OWN_SUITES),
        help="measure the tables of a suite, replay tuners, intrinsics beside plain loops, "
        "bit-serial products beside int8 and float32, kernels "
        "on a simulated GPU or on one of this machine, candidates of a search for a simulated GPU, "
        "models with and without fusion, or beside other libraries, convolutions on a simulated "
        "accelerator, a sweep over "
        "works of all families, or judge predicted times by measured ones",
    )
    parser.add_argument(
        "--device", default="cuda", help="the device of --suite gpu-device (default: %(default)s)"
    )
    parser.add_argument(
        "--data", metavar="FOLDER", help="measured search spaces for --suite gpu-model"
    )
    parser.add_argument(
        "--sample", type=_count, default=0,
        help="most rows of a file for --suite gpu-model (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--peers",
        help=f"libraries to compare with, if installed (default: {','.join(REGISTRY)}; for whole "
        f"models {','.join(MODEL_PEERS)})",
    )
    threads = "number of threads of our kernels and of all peers, or all"
    parser.add_argument("--threads", default="1", help=threads)
    parser.add_argument(
        "--rows",
        choices=("all", "judged"),
        default="all",
        help="measure plain and prepacked weights, or only the row that decides the goals",
    )
    parser.add_argument("--untuned", action="store_true", help="use analytic configs only")
    parser.add_argument("--seconds", type=_positive, help="time for the rounds of one row")
    seed = "seed of the heldout shapes, or of --suite sweep"
    count = (
        f"number of heldout shapes in a family (default: {COUNT}), or of works of --suite sweep "
        f"(default: {sweep.COUNT})"
    )
    parser.add_argument("--seed", type=int, default=SEED, help=seed)
    parser.add_argument("--count", type=int, help=count)
    parser.add_argument(
        "--save",
        metavar="FILE",
        help="write the JSON document to a file, too; tables of a suite go into one that is there, "
        "whose other tables stay",
    )
    add_overwrite(parser)
    parser.add_argument(
        "--tuners",
        default=",".join(tuning.TUNERS),
        help="what --suite tuning compares (default: %(default)s)",
    )
    parser.add_argument(
        "--seeds", type=_count, default=tuning.SEEDS, help="searches of each tuner on each table"
    )
    parser.add_argument(
        "--trials", type=_count, default=accelerator_tuning.TRIALS,
        help="trials of each layer of --suite accelerator-tuning (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--live",
        action="store_true",
        help="after --suite tuning, also tune each of its works on this machine",
    )
    parser.add_argument(
        "--tables",
        metavar="FOLDER",
        default=str(tables.FOLDER),
        help="folder with replay tables for --suite tuning; by default the shipped ones",
    )
    parser.add_argument(
        "--measure-table",
        action="append",
        metavar="WORK",
        help="measure a replay table of a work, on one thread; repeatable; a name of the suite "
        f"tuning, or all: {', '.join(tables.WORKS)}",
    )
    parser.add_argument(
        "--points", type=_count, default=tables.POINTS, help="number of random points in a table"
    )
    parser.add_argument(
        "--into", metavar="FOLDER", default="tables", help="folder for new replay tables"
    )
    parser.add_argument(
        "--db",
        metavar="FILE",
        help="records of the points of replay tables (by default beside the table), or of the "
        "trials of --suite accelerator-tuning, to go on after an interruption; or those that the "
        "builds of --suite models use",
    )
    parser.add_argument(
        "--picture", metavar="FILE", help="write the roofline of --suite accelerator as SVG"
    )
    parser.add_argument(
        "--page", metavar="FILE", nargs="+", help="print the page of a saved document, or of sweeps"
    )
    parser.add_argument("--figures", action="store_true", help="print all figures (the default)")
    parser.add_argument(
        "--only", action="append", choices=list(BENCHMARKS), help="measure this figure; repeatable"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("not a positive number")
    return int(text)


def _positive(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError("not a positive number of seconds")
    return seconds


COMMAND = Command(
    "measure works beside other libraries, or print the figures of this machine",
    _add_arguments,
    run,
)
