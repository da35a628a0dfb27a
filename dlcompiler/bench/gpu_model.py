"""Judge predicted times by search spaces measured on real GPUs: ``--suite gpu-model``.

A file ``KERNEL_TARGET.csv`` (or ``.csv.gz``) has a column for each parameter of a kernel and
``time_ms``, which is empty where it failed. Each row becomes a schedule with these parameters,
whose time is predicted for the simulated target. Nothing is fitted.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import random
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from dlcompiler.bench.gpu_model_works import KERNELS, Kernel, Row
from dlcompiler.errors import DLCompilerError, UserError
from dlcompiler.input_files import read_regular
from dlcompiler.pipeline import lower_program
from dlcompiler.pipeline.gpu_report import estimate_of, time_of
from dlcompiler.simulate.gpu import Given
from dlcompiler.target import REGISTRY, Target, resolve

SCHEMA_VERSION = 1
BEST = 10
"""Rows that the model takes for the fastest, of which the best one counts; [1]."""
LARGEST_BYTES = 64 << 20
"""Largest file, unpacked; [byte]."""
TIME = "time_ms"
SAMPLE = 1000
"""Rows of a file that are predicted by default; [1]."""
MOST_VTHREADS = 64
"""The limit of a target is on the length of code, which is not compiled here; [1]."""
Say: TypeAlias = Callable[[str], None]
_NAME = re.compile(r"([a-z]+)_([a-z0-9-]+)\.csv(\.gz)?", re.ASCII)
_WHOLE = re.compile(r"[0-9]{1,6}", re.ASCII)
_TIME = re.compile(r"[0-9]{1,9}(\.[0-9]{1,20})?", re.ASCII)


@dataclass(frozen=True)
class Measured:
    """A row of a file that ran."""

    row: Row
    time_ms: float


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


def run_suite(say: Say, folder: str | Path, *, sample: int = SAMPLE) -> dict[str, Any]:
    """Judge the model by all files of a folder; return the document.

    A file that cannot be judged is listed under ``failed`` with its reason.

    Parameters
    ----------
    say
        Called with each result.
    folder
        Where the files are.
    sample
        Most rows of a file, drawn at random with the same seed each time.

    Raises
    ------
    UserError
        The folder has no such file.
    """
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
    results, failed = [], {}
    for path in paths:
        try:
            score = judge(path, sample=sample)
        except DLCompilerError as error:
            failed[path.name] = str(error)
            say(failed[path.name])
            continue
        say(str(score))
        results.append(asdict(score))
    return {"version": SCHEMA_VERSION, "results": results, "failed": failed}


def judge(path: Path, *, sample: int = SAMPLE) -> Score:
    """Predict the rows of a file, and compare.

    Raises
    ------
    UserError
        Its kernel or its target is not known, a line is damaged, or too few rows can be compared.
    """
    kernel, target = _subject(path)
    rows = [each for each in read_space(path, kernel) if kernel.is_judged(each.row)]
    if len(rows) > sample:
        rows = random.Random(0).sample(rows, sample)
    known: dict[tuple[int, ...], float | None] = {}
    pairs = []
    for each in rows:
        key = tuple(each.row[name] for name in kernel.parameters)
        if key not in known:
            known[key] = _predicted_ms(kernel, each.row, target)
        if (found := known[key]) is not None:
            pairs.append((found, each.time_ms))
    if len(pairs) < BEST:
        raise UserError(
            f"judge by {path.name}", "too few rows have a predicted time",
            got=f"{len(pairs)} of {len(rows)}", expected=f"{BEST} or more",
        )  # fmt: skip
    return score_of(path.name, pairs, len(rows) - len(pairs))


def score_of(name: str, pairs: Sequence[tuple[float, float]], refused: int = 0) -> Score:
    """Return the score of pairs of a predicted and a measured time."""
    predicted, measured = np.array(pairs).T
    order = np.argsort(predicted, kind="stable")
    ratios = np.log(predicted / measured)
    return Score(
        name, len(pairs), refused, _spearman(predicted, measured),
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


def _subject(path: Path) -> tuple[Kernel, Target]:
    """Return the kernel and the target that the name of a file gives."""
    match = _NAME.fullmatch(path.name)
    kernel, name = match.group(1, 2) if match else ("", "")
    if kernel not in KERNELS or name not in REGISTRY or not resolve(name).rates:
        raise UserError(
            f"judge by {path.name}", "its kernel or its target is not known",
            got=f"kernel {kernel!r}, target {name!r}",
            expected=f"one of the kernels {', '.join(KERNELS)}, and a simulated GPU",
        )  # fmt: skip
    target = resolve(name)
    limits = MappingProxyType({**target.limits, "max_vthreads": MOST_VTHREADS})
    return KERNELS[kernel], replace(target, limits=limits)


def _predicted_ms(kernel: Kernel, row: Row, target: Target) -> float | None:
    """Return the predicted time of a row; None if it has no schedule, or no block of it fits."""
    try:
        program = lower_program(*kernel.make(row), target, verify_passes=False)
    except UserError:
        return None
    total = 0.0
    for launch in program.launches:
        time = time_of(launch, estimate_of(launch), target, Given(), kernel.constant)
        if time is None:
            return None
        total += time.seconds
    return total * 1e3


def _spearman(a: np.ndarray, b: np.ndarray) -> float:
    """Return the correlation of the ranks; equal values have the mean of their ranks."""
    first, second = _ranks(a), _ranks(b)
    if not (first.std() and second.std()):
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse.reshape(-1)]
