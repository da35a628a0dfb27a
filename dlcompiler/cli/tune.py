"""``dlcompiler tune``: search for the fastest configs of workloads, and store them in a file."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from dlcompiler.autotune import Trial, TuningRun
from dlcompiler.autotune.tuners import TUNERS
from dlcompiler.bench.implementations import NotThere
from dlcompiler.bench.shipping import judge, keep, known_configs, start
from dlcompiler.bench.works import GRAMMAR, Work, form, parse_works
from dlcompiler.cli.command import Command
from dlcompiler.cli.progress import Progress
from dlcompiler.errors import TuningError, UserError
from dlcompiler.output_files import Rules, check_output, make_folder
from dlcompiler.runtime.timing import format_ratio, format_seconds
from dlcompiler.terminal import show

SCHEMA_VERSION = 1
_TRIALS = 128
_INTERRUPTED = 130
_STOP_LIMIT_S = 5.0


def run(args: argparse.Namespace) -> int:
    """Tune the workloads in order; return 1 if no config of one of them could be measured."""
    works = parse_works(args.works)
    if args.into is not None and args.threads != 1:
        raise UserError(
            "tune --into",
            "only configs found on one thread are kept",
            got=f"--threads {args.threads}",
        )
    if args.into is not None:
        _check_into(Path(args.into), args.db)
    documents: list[dict[str, Any]] = []
    status = 0
    for work in works:
        try:
            found = _tune(work, args)
        except NotThere as reason:
            raise UserError(f"tune {work.text}", str(reason)) from None
        documents.append(_document(work, found, args))
        ended = _conclude(work, found, args)
        status = max(status, ended)
        if ended == _INTERRUPTED:
            break
    if args.json:
        print(json.dumps(documents[0] if len(works) == 1 else documents, indent=1))
    return status


def _check_into(path: Path, db: str | None) -> None:
    """Check the file of ``--into`` before hours of tuning: configs must be addable to it."""
    make_folder(path.parent)
    check_output(path, Rules(sources=() if db is None else (db,)))
    known_configs(path)


def _tune(work: Work, args: argparse.Namespace) -> TuningRun:
    """Run a search to its end; Ctrl-C stops it, and its results are kept."""
    trials = _TRIALS if args.trials is None and args.seconds is None else args.trials
    found = start(
        work,
        threads=args.threads,
        target=args.target,
        trials=trials,
        seconds=args.seconds,
        tuner=args.tuner,
        seed=args.seed,
        db=args.db,
        early_stopping=args.early_stopping,
    )
    try:
        with Progress(found):
            wait(found)
    except BaseException:  # an interrupt that came outside of `wait`
        found.stop()
        with contextlib.suppress(TuningError):
            found.wait(_STOP_LIMIT_S)
        raise
    return found


def wait(found: TuningRun) -> None:
    """Wait until a search has ended; Ctrl-C stops it, and a failure is printed."""
    try:
        found.wait()
    except KeyboardInterrupt:
        found.stop()
        found.wait()
    except TuningError as error:  # its trials are there, all the same
        print(f"{type(error).__name__}: {error}", file=sys.stderr)


def _conclude(work: Work, found: TuningRun, args: argparse.Namespace) -> int:
    """Print the best config, and store it if the user wants that; return the exit status."""
    best, default = found.best, default_seconds(found)
    if best is None or best.seconds is None:
        show(f"tune {work.text}: no config could be measured", file=sys.stderr)
        return _INTERRUPTED if found.state == "stopped" else 1
    values = ", ".join(f"{name}={value}" for name, value in best.config.values.items())
    if not args.json:
        beside = "" if default is None else f", the default {format_seconds(default)}"
        time = f"{format_seconds(best.seconds)} {best.provenance}"
        show(f"{work.text:<36} best {time}{beside}: {values}")
    if found.state == "stopped":
        return _INTERRUPTED
    if found.state == "failed":
        return 1
    if args.threads == 1 and args.target == "cpu" and (args.into or not args.json):
        _compare(work, found, args)
    return 0


def _compare(work: Work, run: TuningRun, args: argparse.Namespace) -> None:
    """Compare the best config with the one used so far, and store it if it is clearly better."""
    found = judge(work, run)
    if not args.json:
        values = ", ".join(f"{name}={value}" for name, value in found.values.items())
        show(f"{work.text:<36} {format_ratio(found.ratio)} the config used so far: {values}")
    if args.into is not None and found.is_worth_keeping:
        keep(Path(args.into), found)


def default_seconds(run: TuningRun) -> float | None:
    """Return the time of the default config, if it was measured [s]."""
    point = run.plan.first[0].point
    known = (trial.seconds for trial in (*run.trials, *run.prior) if trial.point == point)
    return next((seconds for seconds in known if seconds is not None), None)


def _document(work: Work, run: TuningRun, args: argparse.Namespace) -> dict[str, Any]:
    """Return a run as JSON; times are in seconds."""
    best, plan = run.best, run.plan
    allowed = plan.space.count
    return {
        "version": SCHEMA_VERSION,
        "work": work.text,
        "workload": plan.workload.to_json(),
        "target": plan.machine,
        "tuner": plan.tuner,
        "seed": plan.seed,
        "state": run.state,
        "note": run.note,
        "best_seconds": None if best is None else best.seconds,
        "best_kind": None if best is None else best.provenance.kind,
        "best_on": None if best is None else best.provenance.on,
        "best_config": None if best is None else dict(best.config.values),
        "default_seconds": default_seconds(run),
        "space_size": plan.space.size,
        "space_allowed": {"value": allowed.value, "low": allowed.low, "high": allowed.high},
        "elapsed": run.elapsed_s,
        "phases": dataclasses.asdict(run.clock),
        "rank_correlation": run.rank_correlation(),
        "recall_16": run.recall(16),
        "known_before": len(run.prior),
        "trials": [_trial(trial) for trial in run.trials],
    }


def _trial(trial: Trial) -> dict[str, Any]:
    return {
        "trial": trial.index,
        "round": trial.round,
        "origin": trial.origin,
        "outcome": trial.outcome,
        "seconds": trial.seconds,
        "kind": trial.provenance.kind,
        "on": trial.provenance.on,
        "spread": trial.result.spread_s,
        "predicted_seconds": trial.predicted_s,
        "elapsed": trial.elapsed_s,
        "message": trial.result.message,
        "config": dict(trial.config.values),
    }


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    forms = "; ".join(form(family) for family in GRAMMAR)
    parser.add_argument("works", nargs="+", metavar="WORK", help=f"what to tune: {forms}")
    parser.add_argument(
        "--trials",
        type=int,
        help=f"limit of trials per work ({_TRIALS}, unless --seconds is given)",
    )
    parser.add_argument(
        "--seconds", type=float, help="start no trial of a work after this many seconds"
    )
    parser.add_argument("--tuner", default="xgb", help=f"one of {', '.join(TUNERS)} (xgb)")
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of the search, its model and the input data"
    )
    parser.add_argument(
        "--early-stopping", type=int, metavar="N", help="end after N trials without a faster one"
    )
    parser.add_argument("--threads", type=int, default=1, help="threads of parallel loops (1)")
    parser.add_argument(
        "--target", default="cpu", help="target to build for; this machine has to run it (cpu)"
    )
    parser.add_argument(
        "--db",
        metavar="FILE",
        help="database that keeps the records; a run also learns from those in it (:memory:)",
    )
    parser.add_argument(
        "--json", action="store_true", help="print the result as JSON: a list for several works"
    )
    parser.add_argument(
        "--into",
        metavar="FILE",
        help="keep configs that are faster than those used so far: dlcompiler/ops/tuned/*.json",
    )


COMMAND = Command("search for the fastest configs of works", _add_arguments, run)
