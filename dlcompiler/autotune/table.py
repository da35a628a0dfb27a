"""Trials as a table of pandas."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dlcompiler.autotune.trial import Trial

if TYPE_CHECKING:
    import pandas


def trials_table(trials: Sequence[Trial]) -> pandas.DataFrame:
    """Return a data frame with a row for each trial.

    Columns: ``trial``, ``round``, ``origin``, ``outcome``, ``seconds``, ``spread_s``, ``gflops``,
    ``predicted_s``, ``elapsed_s``, ``build_s``, ``run_s``, ``is_noisy``, ``message``, ``kind`` and
    ``on`` (what ``seconds`` is: ``measured`` or ``simulated``, and on what), ``candidate``
    (what was tried, in words), and ``cfg.NAME`` for each knob.

    Parameters
    ----------
    trials
        What is listed, in this order.
    """
    frame: Any = importlib.import_module("pandas").DataFrame
    return frame([_row(trial) for trial in trials], columns=None if trials else _COLUMNS)


_COLUMNS = (
    "trial", "round", "origin", "outcome", "seconds", "spread_s", "gflops", "predicted_s",
    "elapsed_s", "build_s", "run_s", "is_noisy", "message", "kind", "on", "candidate",
)  # fmt: skip


def _row(trial: Trial) -> dict[str, Any]:
    result = trial.result
    values = (
        trial.index, trial.round, trial.origin, trial.outcome, trial.seconds, result.spread_s,
        trial.gflops, trial.predicted_s, trial.elapsed_s, result.build_s, result.run_s,
        result.is_noisy, result.message, trial.provenance.kind, trial.provenance.on,
        trial.describe(),
    )  # fmt: skip
    knobs = {f"cfg.{name}": value for name, value in trial.config.values.items()}
    return dict(zip(_COLUMNS, values, strict=True)) | knobs
