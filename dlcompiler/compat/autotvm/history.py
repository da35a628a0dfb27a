"""A dispatch context with the fastest measured config of each workload."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

from dlcompiler.compat.autotvm.applying import DispatchContext
from dlcompiler.compat.autotvm.measuring import MeasureInput, MeasureResult
from dlcompiler.compat.autotvm.recording import load_from_file, median
from dlcompiler.compat.devices import GPUS
from dlcompiler.compat.targets import Target, resolve
from dlcompiler.space import Choices

Records: TypeAlias = Any
"""A file, several, or pairs of `MeasureInput` and `MeasureResult`."""
Key: TypeAlias = tuple[str, tuple[Any, ...]]

logger = logging.getLogger("autotvm")


class ApplyHistoryBest(DispatchContext):
    """Provides the fastest measured config of each workload.

    Parameters
    ----------
    records : path, sequence of paths, or pairs
        Logs, or pairs of `MeasureInput` and `MeasureResult`.
    """

    def __init__(self, records: Records = None) -> None:
        self.best: dict[Key, tuple[MeasureInput, MeasureResult]] = {}
        """The fastest measurement by machine and workload."""
        if records is not None:
            self.load(records)

    def load(self, records: Records) -> None:
        """Add measurements; failed ones are ignored."""
        count = 0
        for inp, result in _pairs(records):
            count += 1
            if result.error_no == 0:
                key = (_machine(inp.target), inp.task.workload)
                known = self.best.get(key)
                if known is None or median(result) < median(known[1]):
                    self.best[key] = (inp, result)
        logger.debug("%d records loaded", count)

    def find(self, target: Target | None, workload: tuple[Any, ...] | None) -> Choices | None:
        """Return the fastest config of a workload; None: it was not measured."""
        if workload is None:
            return None
        found = self.best.get((_machine(target or Target("llvm")), workload))
        return None if found is None else found[0].config


def _machine(target: Target) -> str:
    """Return the kind of a target; of a GPU with its model, since times of two do not compare."""
    kind = target.kind.name
    return f"{kind} {resolve(target).name}" if kind in GPUS else kind


def _pairs(records: Records) -> Iterable[tuple[MeasureInput, MeasureResult]]:
    if isinstance(records, str | Path):
        yield from load_from_file(records)
        return
    for item in records:
        if isinstance(item, str | Path):
            yield from load_from_file(item)
        else:
            yield item
