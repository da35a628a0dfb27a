"""Map a config to the nearest one of another space, by names and values of knobs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dlcompiler.space import Config, Knob, Space


@dataclass(frozen=True, slots=True)
class Remapped:
    """A config of a space, made from one of another space."""

    config: Config
    """A config that the space allows."""
    changes: tuple[str, ...]
    """A text for each changed knob."""


def remapped(values: Mapping[str, Any], space: Space, default: Config) -> Remapped:
    """Return the allowed config of a space that is nearest to the given knob values.

    A value that a knob does not have becomes the nearest one that it has, on a logarithmic scale;
    a knob that is not named keeps the default's value. If the values do not go together, knobs that
    were changed return to the default's values one by one, then the others, until they do.

    Parameters
    ----------
    values : mapping
        Values by knob; names that the space does not have are left out.
    space : Space
        The space of the result.
    default : Config
        A config that the space allows.

    Returns
    -------
    Remapped
    """
    chosen: dict[str, Any] = {}
    changes: dict[str, str] = {}
    for knob in space.knobs:
        chosen[knob.name] = value = _nearest(knob, values, default[knob.name])
        if knob.name not in values:
            changes[knob.name] = f"{knob.name}={value!r}, which was not named"
        elif not knob.has(values[knob.name]):
            changes[knob.name] = f"{knob.name}={value!r} in place of {values[knob.name]!r}"
    config = Config(chosen, space.fingerprint)
    for name in [*changes, *(name for name in chosen if name not in changes)]:
        if space.forbidden_by(config) is None:
            break
        if chosen[name] == default[name]:
            continue
        chosen[name] = default[name]
        changes[name] = f"{name}={default[name]!r}, the default, as the values did not go together"
        config = Config(chosen, space.fingerprint)
    return Remapped(space.config(**chosen), tuple(changes.values()))


def _nearest(knob: Knob, values: Mapping[str, Any], default: Any) -> Any:
    """Return the knob's value that is nearest to the one in `values`; without one, the default."""
    if knob.name not in values:
        return default
    wanted = values[knob.name]
    if knob.has(wanted):
        return next(own for own in knob.values if own == wanted and type(own) is type(wanted))
    near = [(_distance(own, wanted), place, own) for place, own in enumerate(knob.values)]
    distance, _, value = min(near, key=lambda item: item[:2])
    return value if math.isfinite(distance) else default


def _distance(own: Any, wanted: Any) -> float:
    """Return the distance between two values [log2]; infinite if their types differ."""
    match own, wanted:
        case (bool(), _) | (_, bool()):
            return math.inf
        case int(), int():
            return abs(_log(own) - _log(wanted))
        case tuple(), tuple() if len(own) == len(wanted):
            return sum(
                (_distance(a, b) if a != b else 0.0) for a, b in zip(own, wanted, strict=True)
            )
    return math.inf


def _log(value: int) -> float:
    return math.copysign(math.log2(1 + abs(value)), value)
