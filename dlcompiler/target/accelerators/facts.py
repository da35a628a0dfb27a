"""What an accelerator is, as values that are the same in every process."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from dlcompiler.target.accelerators.model import Accelerator

_COUNTS = (1, 2, 3, 16, 255, 4096)
"""Counts of elements at which a function of cycles is looked at."""


def facts_of(accelerator: Accelerator) -> tuple[Any, ...]:
    """Return the parts of an accelerator, all parameters of theirs, as nested tuples.

    Two accelerators with equal facts run each program in the same cycles. An intrinsic counts by
    its name, and a function of cycles by its values for a few counts of elements.

    Examples
    --------
    >>> from dlcompiler.target.accelerators.vta import VtaConfig, vta
    >>> facts_of(vta("vta", VtaConfig(profile="A"))) == facts_of(vta("vta", VtaConfig(profile="B")))
    False
    """
    facts: tuple[Any, ...] = _facts(accelerator)
    return facts


def _facts(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and type(value).__module__.startswith(__package__ or ""):
        given = [each for each in dataclasses.fields(value) if not each.name.startswith("_")]
        return tuple((each.name, _facts(getattr(value, each.name))) for each in given)
    if isinstance(value, Mapping):
        return tuple(sorted((name, _facts(item)) for name, item in value.items()))
    if isinstance(value, list | tuple):
        return tuple(map(_facts, value))
    if hasattr(value, "name"):
        return value.name
    if callable(value):
        return tuple(value(count) for count in _COUNTS)
    return value
