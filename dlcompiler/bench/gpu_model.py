"""Judge predicted times by published ones, and by search spaces measured on real GPUs.

``dlcompiler bench --suite gpu-model`` does it. The published ones are those of `gpu_ladders`.

A file ``KERNEL_TARGET.csv`` (or ``.csv.gz``) has a column for each parameter of a kernel and
``time_ms``, which is empty where it failed. Each row becomes a schedule with these parameters,
whose time is predicted for the simulated target. Nothing is fitted.

Rows with the same parameters are lowered and counted once, for the files of all targets.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import os
import random
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dlcompiler.bench.gpu_ladders import LADDERS, Ladder, ladder_times
from dlcompiler.bench.gpu_model_works import KERNELS, Kernel, Row
from dlcompiler.errors import DLCompilerError, UserError
from dlcompiler.input_files import read_regular
from dlcompiler.pipeline import lower_program
from dlcompiler.pipeline.gpu_report import counted_of, estimate_of, time_of_counted
from dlcompiler.runtime.timing import format_ratio, format_seconds
from dlcompiler.simulate.gpu import Given
from dlcompiler.simulate.gpu.time import Counted
from dlcompiler.target import REGISTRY, resolve

SCHEMA_VERSION = 1
BEST = 10
"""Rows that the model takes for the fastest, of which the best one counts; [1]."""
LARGEST_BYTES = 64 << 20
"""Largest file, unpacked; [byte]."""
TIME = "time_ms"
AT_ONCE = 100
"""Rows that a process predicts before it reports; [1]."""
ROOMY = "h100"
"""The target for which rows are lowered: none has more shared memory."""
Say: TypeAlias = Callable[[str], None]
Key: TypeAlias = tuple[int, ...]
"""The parameters of a row, in the order of its kernel's."""
Times: TypeAlias = dict[str, float | None]
"""Target -> predicted time of a row; None if it has no schedule, or no block of it fits [ms]."""
_NAME = re.compile(r"([a-z]+)_([a-z0-9-]+)\.csv(\.gz)?", re.ASCII)
_WHOLE = re.compile(r"[0-9]{1,6}", re.ASCII)
_TIME = re.compile(r"[0-9]{1,9}(\.[0-9]{1,20})?", re.ASCII)


@dataclass(frozen=True)
class Measured:
    """A row of a file that ran."""

    row: Row
    time_ms: float


@dataclass(frozen=True)
class Space:
    """The rows of a file that are judged."""

    file: str
    kernel: str
    target: str
    rows: tuple[Measured, ...]

    def key(self, row: Row) -> Key:
        """Return what decides the schedule of a row."""
        return tuple(row[name] for name in KERNELS[self.kernel].parameters)


@dataclass(frozen=True)
class Score:
    """How predicted times of one file compare with the measured ones."""

    file: str
    rows: int
    """Rows that were compared [1]."""
    refused: int
    """Rows that ran, but have no schedule or fit on no multiprocessor of ours [1]."""
    spearman: float
    """Rank correlation of predicted and measured times [1]."""
    regret10: float
    """Shortest measured time of the ten that are predicted to be fastest, over the shortest."""
    geomean_error: float
    """Geometric mean of the greater of predicted/measured and measured/predicted [1]."""
    bias: float
    """Geometric mean of predicted/measured [1]."""

    def __str__(self) -> str:
        return (
            f"{self.file:<36} {self.rows:6,} rows: rank correlation {self.spearman:.3f}, regret "
            f"{self.regret10:.3f}, error {self.geomean_error:.3f}, bias {self.bias:.3f}"
        )


def run_suite(say: Say, folder: str | Path | None, *, sample: int = 0) -> dict[str, Any]:
    """Judge the model by the published ladders and all files of a folder; return the document.

    A file that cannot be judged is listed under ``failed`` with its reason.

    Parameters
    ----------
    say
        Called with each result.
    folder
        Where the files are; None: judge by the ladders alone.
    sample
        Most rows of a file, drawn at random with the same seed each time; 0: all.

    Raises
    ------
    UserError
        The folder has no such file.
    """
    paths = [] if folder is None else _paths(folder)
    ladders = [_judged_ladder(ladder, say) for ladder in LADDERS]
    spaces, failed = [], {}
    for path in paths:
        try:
            spaces.append(read_judged(path, sample=sample))
        except DLCompilerError as error:
            failed[path.name] = str(error)
            say(failed[path.name])
    results = []
    for kernel in dict.fromkeys(space.kernel for space in spaces):
        together = [space for space in spaces if space.kernel == kernel]
        known = predict_rows(together, say)
        for space in together:
            try:
                score = judge(space, known)
            except DLCompilerError as error:
                failed[space.file] = str(error)
                say(failed[space.file])
                continue
            say(str(score))
            results.append(asdict(score))
    results.sort(key=lambda result: str(result["file"]))
    return {
        "version": SCHEMA_VERSION, "results": results, "ladders": ladders, "failed": failed,
    }  # fmt: skip


def _judged_ladder(ladder: Ladder, say: Say) -> dict[str, Any]:
    """Compare the published times of a ladder with the predicted ones."""
    predicted = ladder_times(ladder)
    published = [rung.published_s for rung in ladder.rungs]
    score = score_of(ladder.name, list(zip(predicted, published, strict=True)))
    say(f"{ladder.name} ({ladder.target}; published: {ladder.source})")
    for rung, seconds in zip(ladder.rungs, predicted, strict=True):
        say(f"  {rung.name:<60} published {format_seconds(rung.published_s):>8}, "
            f"predicted {format_seconds(seconds):>8}: "
            f"{format_ratio(seconds / rung.published_s)} the published")  # fmt: skip
    say(str(score))
    return {
        "name": ladder.name, "target": ladder.target, "source": ladder.source,
        "rungs": [
            {"name": rung.name, "published_s": rung.published_s, "predicted_s": seconds}
            for rung, seconds in zip(ladder.rungs, predicted, strict=True)
        ],
        "spearman": score.spearman, "geomean_error": score.geomean_error,
    }  # fmt: skip


def _paths(folder: str | Path) -> list[Path]:
    try:
        paths = sorted(path for path in Path(folder).iterdir() if _NAME.fullmatch(path.name))
    except OSError as error:
        raise UserError("bench --data", "the folder cannot be read", because=str(error)) from error
    if not paths:
        raise UserError(
            "bench --data", "no measured search space", got=str(folder),
            expected="files named KERNEL_TARGET.csv or KERNEL_TARGET.csv.gz",
            hint=f"kernels: {', '.join(KERNELS)}",
        )  # fmt: skip
    return paths


def read_judged(path: Path, *, sample: int = 0) -> Space:
    """Read the rows of a file that are judged; at most `sample` of them, if it is not 0.

    Raises
    ------
    UserError
        Its kernel or its target is not known, or a line is damaged.
    """
    kernel, target = _subject(path)
    known = KERNELS[kernel]
    rows = [each for each in read_space(path, known) if known.is_judged(each.row)]
    if 0 < sample < len(rows):
        rows = random.Random(0).sample(rows, sample)
    return Space(path.name, kernel, target, tuple(rows))


def judge(space: Space, known: Mapping[Key, Times]) -> Score:
    """Compare the measured times of a file with the predicted ones.

    Raises
    ------
    UserError
        Too few rows can be compared.
    """
    pairs = []
    for each in space.rows:
        found = known[space.key(each.row)][space.target]
        if found is not None:
            pairs.append((found, each.time_ms))
    if len(pairs) < BEST:
        raise UserError(
            f"judge by {space.file}", "too few rows have a predicted time",
            got=f"{len(pairs)} of {len(space.rows)}", expected=f"{BEST} or more",
        )  # fmt: skip
    return score_of(space.file, pairs, len(space.rows) - len(pairs))


# -- predictions ----------------------------------------------------------------------------------


def predict_rows(spaces: Sequence[Space], say: Say) -> dict[Key, Times]:
    """Predict the times of the rows of one kernel's files, each row once for all targets.

    Parameters
    ----------
    spaces
        Files of one kernel.
    say
        Called from time to time.
    """
    kernel = spaces[0].kernel
    targets = tuple(dict.fromkeys(space.target for space in spaces))
    keys = sorted({space.key(each.row) for space in spaces for each in space.rows})
    parts = [keys[start : start + AT_ONCE] for start in range(0, len(keys), AT_ONCE)]
    found: dict[Key, Times] = {}
    for number, part in enumerate(_predicted_parts(kernel, parts, targets)):
        found.update(part)
        if number % 10 == 9:
            say(f"{kernel}: {len(found):,} of {len(keys):,} rows predicted")
    return found


def _predicted_parts(
    kernel: str, parts: Sequence[Sequence[Key]], targets: tuple[str, ...]
) -> Iterator[dict[Key, Times]]:
    """Yield the predictions of each part; of several parts, in processes."""
    if len(parts) < 2:
        yield from (predict_keys(kernel, part, targets) for part in parts)
        return
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        running = [pool.submit(predict_keys, kernel, part, targets) for part in parts]
        for each in running:
            yield each.result()


def predict_keys(kernel: str, keys: Sequence[Key], targets: Sequence[str]) -> dict[Key, Times]:
    """Return the predicted times of rows.

    Parameters
    ----------
    kernel
        Name of the kernel.
    keys
        The parameters of each row.
    targets
        Names of GPUs.
    """
    known = KERNELS[kernel]
    return {
        key: predict_row(known, dict(zip(known.parameters, key, strict=True)), targets)
        for key in keys
    }


def predict_row(kernel: Kernel, row: Row, targets: Sequence[str]) -> Times:
    """Return the predicted times of a row for some GPUs."""
    roomy = resolve(ROOMY)
    times: Times = dict.fromkeys(targets)
    try:
        (launch,) = lower_program(*kernel.make(row), roomy, verify_passes=False).launches
    except UserError:
        return times
    counted: dict[int, Counted] = {}  # by the threads of a warp
    for name in targets:
        target = resolve(name)
        size = target.limits["warp_size"]
        if size not in counted:
            counted[size] = counted_of(launch, target, Given(), is_merged=kernel.is_merged)
        needs = estimate_of(launch, counted[size], kernel.constant)
        found = time_of_counted(counted[size], needs, target, kernel.constant)
        times[name] = None if found is None else found.seconds * 1e3
    return times


# -- scores and files -----------------------------------------------------------------------------


def score_of(name: str, pairs: Sequence[tuple[float, float]], refused: int = 0) -> Score:
    """Return the score of pairs of a predicted and a measured time."""
    predicted, measured = np.array(pairs).T
    order = np.argsort(predicted, kind="stable")
    ratios = np.log(predicted / measured)
    return Score(
        name, len(pairs), refused, spearman(predicted, measured),
        float(measured[order[:BEST]].min() / measured.min()),
        math.exp(float(np.abs(ratios).mean())), math.exp(float(ratios.mean())),
    )  # fmt: skip


def read_space(path: Path, kernel: Kernel) -> list[Measured]:
    """Read the rows of a file that ran.

    Raises
    ------
    UserError
        The file cannot be read, a column is missing, or a value is not a number.
    """
    text = _text(path)
    reader = csv.reader(io.StringIO(text), strict=True)
    operation = f"read {path.name}"
    try:
        names, *lines = list(reader)
    except (csv.Error, ValueError) as error:
        raise UserError(operation, "not a table", because=str(error)) from error
    missing = [name for name in (*kernel.parameters, TIME) if name not in names]
    if missing:
        raise UserError(operation, "a column is missing", got=", ".join(missing))
    found = []
    for number, line in enumerate(lines, 2):
        values = dict(zip(names, line, strict=False))
        time = values.get(TIME, "?")
        parameters = [values.get(name, "") for name in kernel.parameters]
        is_number = not time or (_TIME.fullmatch(time) and float(time) > 0)
        if len(line) != len(names) or not (is_number and all(map(_WHOLE.fullmatch, parameters))):
            raise UserError(
                operation, f"line {number} is not a row of numbers", got=f"{','.join(line):.100}"
            )
        if time:
            row = {n: int(text) for n, text in zip(kernel.parameters, parameters, strict=True)}
            found.append(Measured(row, float(time)))
    return found


def _text(path: Path) -> str:
    try:
        data = read_regular(path, LARGEST_BYTES)
        if path.suffix == ".gz":
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
                data = packed.read(LARGEST_BYTES + 1)
        if len(data) > LARGEST_BYTES:
            raise OSError(f"longer than {LARGEST_BYTES:,} bytes")
        return data.decode("ascii")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise UserError(f"read {path.name}", "it cannot be read", because=str(error)) from error


def _subject(path: Path) -> tuple[str, str]:
    """Return the names of the kernel and of the target that the name of a file gives."""
    match = _NAME.fullmatch(path.name)
    kernel, name = match.group(1, 2) if match else ("", "")
    if kernel not in KERNELS or name not in REGISTRY or not resolve(name).rates:
        raise UserError(
            f"judge by {path.name}", "its kernel or its target is not known",
            got=f"kernel {kernel!r}, target {name!r}",
            expected=f"one of the kernels {', '.join(KERNELS)}, and a simulated GPU",
        )  # fmt: skip
    return kernel, name


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    """Return the correlation of the ranks; equal values have the mean of their ranks."""
    first, second = _ranks(a), _ranks(b)
    if not (first.std() and second.std()):
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse.reshape(-1)]
