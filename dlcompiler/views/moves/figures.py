"""The figures that a preview compares: operations, bytes between the levels of memory, time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from dlcompiler.schedule import Schedule, State
from dlcompiler.target import Target
from dlcompiler.te import Tensor
from dlcompiler.views.memory import levels
from dlcompiler.views.memory.metrics import Metric, metrics
from dlcompiler.views.moves import predicted_time

MODELS = {
    "byte": ("bytes", levels.MODEL),
    "s": ("time", predicted_time.MODEL),
}
"""Unit of a predicted figure -> what it is, and the model that predicts it."""


class Model(TypedDict):
    """A model that predicts figures."""

    of: str
    """What it predicts: ``bytes``, ``time``."""
    text: str


def figures(program: Schedule | State, args: Sequence[Tensor], target: Target) -> list[Metric]:
    """Return all figures of a state that a preview shows, in the order of its table.

    They are those of `metrics`, with a line for each level of memory in place of the memory traffic
    (`level_metrics`), and the `predicted_time` of a call.
    """
    counted = [_short(each) for each in metrics(program, args, target) if each["unit"] != "byte"]
    moved = levels.level_metrics(program, args, target)
    return [*counted, *moved, predicted_time.predicted_time(program, args, target)]


def _short(metric: Metric) -> Metric:
    """Leave out the name of a metric in its text: the table has it."""
    metric["text"] = metric["text"].removesuffix(f" {metric['name']}")
    return metric


def models_of(units: Sequence[str]) -> list[Model]:
    """Return the models that figures of these units come from."""
    return [{"of": what, "text": text} for unit, (what, text) in MODELS.items() if unit in units]
