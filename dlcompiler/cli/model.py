"""``dlcompiler model``: import a model, compare its results, and time it beside peers."""

from __future__ import annotations

import argparse
import contextlib
import json
from typing import Any

from dlcompiler.autotune import RecordStore, TuningRun, tune
from dlcompiler.bench.array_files import SUFFIX, read_array
from dlcompiler.bench.implementations import target_of
from dlcompiler.bench.model_document import (
    document_of,
    results_text,
    summary,
    tuned_line,
)
from dlcompiler.bench.model_files import FORMATS
from dlcompiler.bench.model_tuning import TaskTime, chosen, share_of_first, task_times
from dlcompiler.bench.models import (
    BuiltModel,
    ImportedModel,
    ModelBench,
    ModelResult,
    Settings,
    built,
    imported,
)
from dlcompiler.bench.peers import MODEL_PEERS
from dlcompiler.cli.command import Command, threads_of
from dlcompiler.cli.doctor import describe_cpu
from dlcompiler.cli.progress import Progress, stage
from dlcompiler.cli.tune import default_seconds, wait
from dlcompiler.errors import UserError
from dlcompiler.target.detect import host
from dlcompiler.terminal import show
from dlcompiler.views.graphs.profile_picture import profile_table

_INTERRUPTED = 130


def run(args: argparse.Namespace) -> int:
    """Measure a model; return 1 if its results are wrong."""
    settings = _settings(args)
    with contextlib.ExitStack() as stack:
        store = None
        if args.tune or args.db:
            is_read_only = not args.tune
            store = RecordStore(args.db or ":memory:", is_read_only=is_read_only)
            stack.callback(store.close)
        bench = stack.enter_context(ModelBench(settings))
        return _run(args, bench, store)


def _run(args: argparse.Namespace, bench: ModelBench, store: RecordStore | None) -> int:
    with stage(f"import {args.file}"):
        given = imported(
            args.file,
            shapes=dict(map(_shape, args.shape)),
            constants=dict(map(_value, args.constant)),
            values=dict(map(_value, args.input)),
            seed=args.seed,
        )
    made, result = _measured(args, bench, given, store)
    document = _document(given, made, result, bench.settings)
    if not args.json:
        show(*summary(given, made, result, bench.settings))
        _show_profile(args, result)
    status = int(result.verified is False)
    if args.tune and store is not None and result.kernels:
        rows, is_interrupted = _tune(args, given, result, store)
        if is_interrupted:
            document, status = {**document, "tuned": rows}, _INTERRUPTED
        else:
            made, after = _measured(args, bench, given, store)
            document = _document(given, made, after, bench.settings)
            document |= {"tuned": rows, "untuned": result.to_json()}
            status = int(after.verified is False)
            if not args.json:
                show("", "after tuning:", *results_text(after, bench.settings.threads))
                _show_profile(args, after)
    if args.json:
        print(json.dumps(document, indent=1))
    return status


def _document(
    given: ImportedModel, made: BuiltModel, result: ModelResult, settings: Settings
) -> dict[str, Any]:
    """Return a measured model as JSON values, with the machine."""
    document = document_of(given, made, result, settings)
    cpu = describe_cpu(host()).replace("\n", "; ")
    return {**document, "machine": {"cpu": cpu, **document["machine"]}}


def _settings(args: argparse.Namespace) -> Settings:
    if args.tolerance is not None and not 0 <= args.tolerance < float("inf"):
        raise UserError("model --tolerance", "not a finite number from 0 on", got=args.tolerance)
    if args.tune is not None and args.tune < 1:
        raise UserError("model --tune", "not a positive number of trials", got=args.tune)
    if args.seed < 0:
        raise UserError("model --seed", "not a whole number from 0 on", got=args.seed)
    if args.seconds is not None and not 0 < args.seconds < float("inf"):
        raise UserError("model --seconds", "not a positive number of seconds", got=args.seconds)
    return Settings(
        peers=tuple(name for name in args.peers.split(",") if name),
        threads=threads_of(args.threads, "model"),
        tolerance=args.tolerance,
        limits={} if args.seconds is None else {"budget_s": args.seconds},
    )


def _measured(
    args: argparse.Namespace, bench: ModelBench, given: ImportedModel, store: RecordStore | None
) -> tuple[BuiltModel, ModelResult]:
    with stage("build kernels") as progress:
        made = built(given, bench.settings.threads, store, progress)
    with stage("compare and measure"):
        result = bench.measure(given, made)
    if args.profile and result.kernels:
        with stage("measure the ceilings of this machine"):
            result = bench.under_roofline(result, made)
    return made, result


def _show_profile(args: argparse.Namespace, result: ModelResult) -> None:
    if args.profile and result.kernels:
        show("", *profile_table(result.kernels).split("\n"))


def _tune(
    args: argparse.Namespace, given: ImportedModel, result: ModelResult, store: RecordStore
) -> tuple[list[dict[str, Any]], bool]:
    """Tune the slowest kernels; return what was found, and whether Ctrl-C ended it."""
    threads = threads_of(args.threads, "model")
    waiting = chosen(task_times(given, threads, result.kernels), args.tune)
    left, rows = args.tune, []
    while waiting and left > 0:
        task, trials = waiting[0], share_of_first(waiting, left)
        found = _search(task, trials, threads, args.seed, store)
        rows.append(_tuned(task, found))
        if not args.json:
            show(tuned_line(rows[-1]))
        if found.state == "stopped":
            return rows, True
        waiting, left = waiting[1:], left - len(found.trials)
    return rows, False


def _search(task: TaskTime, trials: int, threads: int, seed: int, store: RecordStore) -> TuningRun:
    found = tune(
        task.workload, target_of(threads), trials=trials, seed=seed, db=store, threads=threads
    )
    with Progress(found):
        wait(found)
    return found


def _tuned(task: TaskTime, found: TuningRun) -> dict[str, Any]:
    return {
        "workload": str(task.workload),
        "kernels": list(task.calls),
        "seconds_before": task.seconds,
        "trials": len(found.trials),
        "best_seconds": None if found.best is None else found.best.seconds,
        "default_seconds": default_seconds(found),
    }


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    """Return a name and a shape: ``x=1x3x224x224``; ``x=`` has no dimensions."""
    name, _, sizes = text.rpartition("=")
    extents = sizes.split("x") if sizes else []
    if not name or not all(extent.isdecimal() for extent in extents):
        raise UserError(
            "model --shape", "not a name and a shape", got=text, expected="NAME=1x3x224x224"
        )
    return name, tuple(map(int, extents))


def _value(text: str) -> tuple[str, Any]:
    """Return a name and a value: ``x=FILE.npy``, ``axes=0,1`` or ``n=3``."""
    name, _, value = text.partition("=")
    if name and value.endswith(SUFFIX):
        return name, read_array(value)
    numbers = [_number(part) for part in value.split(",")]
    if not name or None in numbers:
        raise UserError(
            "model", "not a name and a value", got=text, expected="NAME=FILE.npy, or NAME=1,2"
        )
    return name, numbers if "," in value else numbers[0]


def _number(text: str) -> int | float | None:
    """Return the number in a text; None if it is none."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return None


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE",
        help="an ONNX model; or one of another library, by its ending, with its weights beside it: "
        + ", ".join(FORMATS),
    )  # fmt: skip
    parser.add_argument(
        "--peers",
        default="onnxruntime",
        help=f"libraries to compare with, if installed, of {', '.join(MODEL_PEERS)} (default: "
        "%(default)s); '' for none",
    )
    threads = "number of threads of our model and of all peers, or all (default: %(default)s)"
    parser.add_argument("--threads", default="1", help=threads)
    parser.add_argument(
        "--shape", metavar="NAME=1x3x224x224", action="append", default=[],
        help="shape of an input whose extents the model leaves open; repeatable; where only the "
        "first extent is open, it is 1 by default",
    )  # fmt: skip
    parser.add_argument(
        "--input", metavar="NAME=FILE.npy", action="append", default=[],
        help="values of an input: a file of NumPy, or numbers, NAME=1,2; repeatable; all other "
        "inputs are random: floats from -1 to 1, whole numbers 0 or 1",
    )  # fmt: skip
    parser.add_argument(
        "--constant", metavar="NAME=1,2", action="append", default=[],
        help="value of an input that is a constant from now on, as of --input; repeatable",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="seed of random inputs and searches")
    parser.add_argument(
        "--tolerance", type=float,
        help="largest error of results, relative to the largest magnitude in each (default: 1e-4 "
        "for float32, 2e-2 for float16); whole numbers are equal",
    )  # fmt: skip
    parser.add_argument("--seconds", type=float, help="time for the rounds of the measurement")
    parser.add_argument(
        "--profile", action="store_true",
        help="print the kernels with their times, rates, and shares of the roofline",
    )  # fmt: skip
    parser.add_argument(
        "--tune", type=int, metavar="TRIALS",
        help="tune the slowest kernels, build again, and measure again; TRIALS are shared out",
    )  # fmt: skip
    parser.add_argument(
        "--db", metavar="FILE", help="records of tuning runs: used by the build, added to by --tune"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


COMMAND = Command("measure a model beside other libraries", _add_arguments, run)
