"""Sketches: schedules whose numbers may be open.

A template that is run on a sketch leaves a state in which splits and layouts stand with symbols in
place of numbers. It says how loops, extents and accesses follow from these numbers, for all of
them at once; it is not lowered.
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


class Sketch(Schedule):
    """A schedule whose steps are applied without being checked.

    Numbers that steps take may be objects that stand for a symbol: with a method ``__as_expr__``.
    The same steps with any numbers in place of the symbols have to be legal, or are found illegal
    when they are applied to a `Schedule`.
    """

    def apply(self, name: str, stage: str, args: Mapping[str, Any]) -> Any:
        """Apply a primitive."""
        item = known_primitive(f"sketch {name!r}", name)
        number = self._node.number + 1
        context = StepContext(f"sketch{number}", self._history, f"{name} {stage}")
        values = {key: _symbol(value) for key, value in args.items()}
        state, result = item.apply(self.state, self.state.stage(stage), context, **values)
        self._node = Node(state, self._node, None, result, number)
        return result


def sketch(outputs: tuple[Tensor, ...]) -> Sketch:
    """Start a sketch: every stage by its plain loop nest."""
    return Sketch(History(initial_state(outputs)))


def _symbol(value: Any) -> Any:
    if isinstance(value, Axis | Var) or not hasattr(value, "__as_expr__"):
        return value
    expr = value.__as_expr__()
    return int(expr.value) if isinstance(expr, Const) else expr
