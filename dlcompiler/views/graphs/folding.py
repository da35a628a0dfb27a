"""Fold large graphs: units in the middle, and those of wide layers, become one box each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from dlcompiler.views.graphs.units import Unit
from dlcompiler.views.render.boxes import count

MOST_LAYERS = 32
"""Most layers of units that are drawn; [1]."""
MOST_BESIDE = 6
"""Most boxes beside each other; [1]."""


def folded(units: Sequence[Unit]) -> list[Unit]:
    """Return the units to draw: at most `MOST_LAYERS` layers of `MOST_BESIDE`.

    Layers in the middle become one unit, and so do those of a wide layer behind the first ones.
    Both keep edges downward: a fold replaces units of neighbouring layers, between which no path
    leaves and comes back.

    Parameters
    ----------
    units : sequence of Unit
        Each behind those that it reads.
    """
    level = _levels(units)
    deepest = max(level.values(), default=0)
    instead: dict[Unit, Unit] = {}
    if deepest >= MOST_LAYERS:
        half = MOST_LAYERS // 2
        middle = [unit for unit in units if half <= level[unit] <= deepest - half]
        _replace(middle, instead)
    for number in range(deepest + 1):
        beside = [unit for unit in units if level[unit] == number and unit not in instead]
        if len(beside) > MOST_BESIDE:
            _replace(beside[MOST_BESIDE - 1 :], instead)
    return _rebuilt(units, instead, level)


def _levels(units: Sequence[Unit]) -> dict[Unit, int]:
    level: dict[Unit, int] = {}
    for unit in units:
        level[unit] = 1 + max((level[each] for each in unit.reads), default=-1)
    return level


def _replace(hidden: Sequence[Unit], instead: dict[Unit, Unit]) -> None:
    fold = Unit(f"… {count(len(hidden), 'box', 'boxes')} left out", is_fold=True)
    operators = Counter(operator for unit in hidden for _, operator in unit.parts)
    fold.parts = [(f"{number} × {name}", "") for name, number in operators.most_common(3)]
    fold.is_result = any(unit.is_result for unit in hidden)
    instead.update(dict.fromkeys(hidden, fold))


def _rebuilt(
    units: Sequence[Unit], instead: Mapping[Unit, Unit], level: Mapping[Unit, int]
) -> list[Unit]:
    """Return the units that remain, which read folds in place of what was folded."""
    if not instead:
        return list(units)
    made: dict[Unit, Unit] = {}
    for unit in units:
        if unit not in instead:
            made[unit] = Unit(
                unit.name, unit.parts, unit.result, [], unit.constants, unit.constant_bytes,
                unit.is_input, unit.is_result,
            )  # fmt: skip
        else:
            made[unit] = instead[unit]
    for unit in units:
        target = made[unit]
        _extend(target, (made[each] for each in unit.reads))
    last = {made[unit]: level[unit] for unit in sorted(units, key=level.__getitem__)}
    return sorted(dict.fromkeys(made.values()), key=last.__getitem__)


def _extend(unit: Unit, others: Iterable[Unit]) -> None:
    unit.reads += [o for o in dict.fromkeys(others) if o is not unit and o not in unit.reads]
