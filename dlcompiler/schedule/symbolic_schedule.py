"""Symbolic schedules: schedules whose factors and extents may be symbols instead of numbers.

A template that runs on a symbolic schedule makes a state whose splits and layouts have symbols. The
state says how loops, extents and accesses depend on these symbols, for all their values at once.
The features of a space are computed from it; it is not lowered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dlcompiler.ir import Axis, Const, Var
from dlcompiler.schedule.arguments import known_primitive
from dlcompiler.schedule.history import History, Node
from dlcompiler.schedule.primitives import StepContext
from dlcompiler.schedule.schedule import Schedule
from dlcompiler.schedule.state import initial_state
from dlcompiler.te import Tensor

_PLAIN = ("pragma_value",)
"""Arguments that a state holds as numbers: no symbol takes their place."""


class SymbolicSchedule(Schedule):
    """A schedule whose steps are applied without being checked.

    A number may be given as an object with a method ``__as_expr__`` that returns a symbol. Whether
    the steps are legal for given values of the symbols shows when they are applied to a `Schedule`.
    """

    def apply(self, name: str, stage: str, args: Mapping[str, Any]) -> Any:
        """Apply a primitive."""
        item = known_primitive(f"symbolic schedule {name!r}", name)
        number = self._node.number + 1
        context = StepContext(f"symbolic{number}", self._history, f"{name} {stage}")
        values = {key: value if key in _PLAIN else _symbol(value) for key, value in args.items()}
        state, result = item.apply(self.state, self.state.stage(stage), context, **values)
        self._node = Node(state, self._node, None, result, number)
        return result


def symbolic_schedule(outputs: tuple[Tensor, ...]) -> SymbolicSchedule:
    """Start a symbolic schedule: each stage has its default loop nest."""
    return SymbolicSchedule(History(initial_state(outputs)))


def _symbol(value: Any) -> Any:
    if isinstance(value, Axis | Var) or not hasattr(value, "__as_expr__"):
        return value
    expr = value.__as_expr__()
    return int(expr.value) if isinstance(expr, Const) else expr
