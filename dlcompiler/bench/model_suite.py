"""The suite ``models``: whole networks beside other libraries, one example at a time.

The models of the builders are written as ONNX files, which return scores. Each library runs the
same file: ONNX Runtime reads it, PyTorch runs its nodes eagerly. All objects are compiled anew, so
that the time to build is that of a cold cache.

**Source** of the first five: T. Chen and others, "TVM: An automated end-to-end optimizing compiler
for deep learning", OSDI 2018, section 6.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from dlcompiler.autotune import RecordStore
from dlcompiler.bench.graphs import own_cache
from dlcompiler.bench.intervals import geometric_mean
from dlcompiler.bench.model_document import document_of, results_text
from dlcompiler.bench.models import ModelBench, ModelResult, Settings, built, imported
from dlcompiler.bench.onnx_export import onnx_of
from dlcompiler.bench.peers import versions
from dlcompiler.errors import UserError
from dlcompiler.graph import builders
from dlcompiler.graph.builders import Model
from dlcompiler.graph.execution.build import Progress
from dlcompiler.graph.execution.kept_kernels import KEPT
from dlcompiler.graph.ir import Call, Function, Module, Op
from dlcompiler.output_files import write_file
from dlcompiler.runtime.timing import format_ratio, format_seconds
from dlcompiler.views.render.boxes import count

SCHEMA_VERSION = 1
PAPER: Mapping[str, Callable[[], Model]] = {
    "resnet18": partial(builders.resnet, 18),
    "mobilenet": partial(builders.mobilenet, 1),
    "lstm": builders.lstm,
    "dqn": builders.dqn,
    "dcgan": builders.dcgan,
}
"""The models of the paper."""
MODELS: Mapping[str, Callable[[], Model]] = {
    **PAPER,
    "resnet50": partial(builders.resnet, 50),
    "mobilenet2": partial(builders.mobilenet, 2),
    "squeezenet": builders.squeezenet,
    "encoder": builders.transformer,
    "vit": builders.vit,
}
"""The models of the suite; files of ONNX may be measured, too."""
STYLE_OF_PAPER = "torch"
"""The peer that the paper's models are compared with by themselves, as there: an eager library."""
Say: TypeAlias = Callable[[str], None]
Stage: TypeAlias = Callable[[str], AbstractContextManager[Progress]]


@contextmanager
def _silent(text: str) -> Iterator[Progress]:
    del text
    yield lambda done, total: None


@dataclass(frozen=True)
class _Measured:
    """A model with its result."""

    name: str
    result: ModelResult
    row: dict[str, Any]


def run_suite(
    say: Say,
    settings: Settings,
    names: Sequence[str] = (),
    *,
    db: RecordStore | None = None,
    stage: Stage = _silent,
) -> dict[str, Any]:
    """Measure models; return the document.

    A model that fails, or whose result is wrong, is listed under ``failed`` with its reason; the
    others are measured.

    Parameters
    ----------
    say
        Called with the lines about a model as soon as it is measured.
    settings
        Peers, threads and limits.
    names
        Names in `MODELS`, and ONNX files; by default all of `MODELS`.
    db
        Records of tuning runs that builds use.
    stage
        Shows what happens while it lasts.

    Raises
    ------
    UserError
        A name is neither a model nor a file.
    """
    for name in names:
        if name not in MODELS and not Path(name).is_file():
            raise UserError(
                "bench --suite models", "neither a model nor a file", got=repr(name),
                expected=f"a file of ONNX, or {', '.join(MODELS)}",
            )  # fmt: skip
    found: list[_Measured] = []
    failed = {}
    with own_cache(), tempfile.TemporaryDirectory() as folder, ModelBench(settings) as bench:
        for name in names or MODELS:
            try:
                measured = _measured(name, Path(folder), bench, db, stage)
            except Exception as error:
                failed[name] = f"{type(error).__name__}: {error}"
                say(f"{name}: {failed[name]}")
                continue
            if measured.result.verified is False:
                failed[name] = measured.result.reason
            say(_text(measured, settings))
            found.append(measured)
    means = {**_means(found), **_means(found, STYLE_OF_PAPER)}
    for words, value in means.items():
        say(f"{words}: geometric mean {format_ratio(value)}")
    return {
        "version": SCHEMA_VERSION, "threads": settings.threads,
        "peer_versions": versions(settings.peers), "models": [each.row for each in found],
        "means": means, "failed": failed,
    }  # fmt: skip


def _measured(
    name: str, folder: Path, bench: ModelBench, db: RecordStore | None, stage: Stage
) -> _Measured:
    path = Path(name)
    if name in MODELS:
        path = folder / "model.onnx"
        write_file(path, onnx_of(without_softmax(MODELS[name]().bound)))
    with stage(f"{name}: import"):
        given = imported(path)
    KEPT.clear()  # kernels that another model has, too, are built anew
    with stage(f"{name}: build kernels") as progress:
        made = built(given, bench.settings.threads, db, progress)
    with stage(f"{name}: compare and measure"):
        result = bench.measure(given, made)
    row = {**document_of(given, made, result, bench.settings), "model": name}
    for key in ("version", "machine", "peer_versions"):  # the document has them
        del row[key]
    return _Measured(name, result, row)


def without_softmax(module: Module) -> Module:
    """Return a classifier that gives scores, or the module itself if it is no classifier.

    With random weights the scores of deep models differ by hundreds. A softmax makes 1 and 0 of
    them, whatever their errors are.
    """
    main = module.main
    match main.body:
        case Call(Op("nn.softmax"), (scores, *_)):
            return Module.from_expr(Function(main.params, scores))
    return module


def _text(measured: _Measured, settings: Settings) -> str:
    row = measured.row
    kernels, seconds = count(len(row["kernels"]), "kernel"), format_seconds(row["build_seconds"])
    lines = [f"{measured.name}: {kernels}, built in {seconds}"]
    lines += results_text(measured.result, settings.threads)
    return "\n".join(lines)


def _means(found: Sequence[_Measured], peer: str = "") -> dict[str, float]:
    """Return the geometric mean of the ratios to the best peer, or of the paper's to one peer."""
    if not peer:
        ratios = {each.name: each.result.ratio for each in found}
        words = "the best peer of each model"
    else:
        peers = {each.name: each.result.peers.get(peer) for each in found if each.name in PAPER}
        ratios = {name: None if each is None else each.ratio for name, each in peers.items()}
        words = f"the paper's models beside {peer}"
    values = [ratio.median for ratio in ratios.values() if ratio is not None]
    return {words: geometric_mean(values)} if values else {}
