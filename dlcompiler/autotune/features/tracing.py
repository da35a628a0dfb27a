"""Run a template once for all configs that lead to the same decisions in it.

The template gets one config whose values record the arithmetic and the comparisons done with them
(`Traced`). A number that becomes part of the schedule, such as a split factor, is recorded as a
symbol. A decision, such as ``if cfg["pack"]``, is taken by the value in the config and recorded.
All configs with the same decisions lead to the same steps: together they are a *skeleton*.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from dlcompiler.autotune.features.numbers import (
    Graph,
    Num,
    Number,
    add,
    at_most,
    equal,
    floordiv,
    mod,
    multiply,
    subtract,
)
from dlcompiler.errors import UserError
from dlcompiler.ir import Expr, Var, index_const
from dlcompiler.ops import Operator
from dlcompiler.schedule.state import State
from dlcompiler.schedule.symbolic_schedule import symbolic_schedule
from dlcompiler.space import Config, Space, Workload
from dlcompiler.space.knob import value_key
from dlcompiler.target import Target


@dataclass(frozen=True, slots=True)
class Decision:
    """A comparison of knobs that a template made, and its outcome."""

    condition: Number
    """The formula of the outcome: 1 if true."""
    is_true: bool
    """The outcome."""


@dataclass(frozen=True, slots=True, eq=False)
class Skeleton:
    """The schedule of all configs for which a template makes the same decisions."""

    decisions: tuple[Decision, ...]
    """The decisions, in the order in which they were made."""
    state: State | None
    """State of the schedule, with symbols for numbers. None: the template refuses these configs."""
    symbols: dict[Var, Num]
    """Formula of knobs for each symbol."""


@dataclass(slots=True)
class Tracer:
    """The decisions and symbols recorded while a template runs."""

    graph: Graph
    decisions: list[Decision] = field(default_factory=list)
    symbols: dict[Var, Num] = field(default_factory=dict)
    _by_node: dict[Number, Var] = field(default_factory=dict)

    def decide(self, condition: Num, is_true: bool) -> bool:
        """Return the outcome of a comparison; record it unless it is the same for all configs."""
        if isinstance(condition, Number):
            decision = Decision(condition, is_true)
            if decision not in self.decisions:
                self.decisions.append(decision)
        return is_true

    def symbol(self, node: Num, value: int) -> Expr:
        """Return the symbol that represents a formula in expressions; a constant for a number."""
        if not isinstance(node, Number):
            return index_const(value)
        if node not in self._by_node:
            var = Var(f"knob{len(self._by_node)}", "index", is_symbol=True)
            self._by_node[node] = var
            self.symbols[var] = node
        return self._by_node[node]


class Traced:
    """A whole number computed from knobs, with its formula."""

    __slots__ = ("node", "tracer", "value")

    def __init__(self, tracer: Tracer, node: Num, value: int) -> None:
        self.tracer, self.node, self.value = tracer, node, value

    def __as_expr__(self) -> Expr:
        return self.tracer.symbol(self.node, self.value)

    def _combined(
        self, function: Callable[[Num, Num], Num], plain: Callable[[int, int], int], other: Any,
        *, swapped: bool = False,
    ) -> Any:  # fmt: skip
        if not isinstance(other, Traced | int):
            return NotImplemented
        node, value = _operand(other)
        a, b = ((node, value), (self.node, self.value))[:: 1 if swapped else -1]
        if plain in (operator.floordiv, operator.mod) and b[1] <= 0:
            return plain(a[1], int(self if swapped else other))
        return Traced(self.tracer, function(a[0], b[0]), plain(a[1], b[1]))

    def __add__(self, other: Any) -> Any:
        return self._combined(add, operator.add, other)

    def __radd__(self, other: Any) -> Any:
        return self._combined(add, operator.add, other, swapped=True)

    def __sub__(self, other: Any) -> Any:
        return self._combined(subtract, operator.sub, other)

    def __rsub__(self, other: Any) -> Any:
        return self._combined(subtract, operator.sub, other, swapped=True)

    def __mul__(self, other: Any) -> Any:
        return self._combined(multiply, operator.mul, other)

    def __rmul__(self, other: Any) -> Any:
        return self._combined(multiply, operator.mul, other, swapped=True)

    def __floordiv__(self, other: Any) -> Any:
        return self._combined(floordiv, operator.floordiv, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._combined(floordiv, operator.floordiv, other, swapped=True)

    def __mod__(self, other: Any) -> Any:
        return self._combined(mod, operator.mod, other)

    def __rmod__(self, other: Any) -> Any:
        return self._combined(mod, operator.mod, other, swapped=True)

    def __neg__(self) -> Any:
        return 0 - self

    # -- what is decided by it ------------------------------------------------------------------

    def _is_at_most(self, other: Any, shift: int) -> Any:
        """Return whether ``self + shift <= other``, and record the decision."""
        if not isinstance(other, Traced | int):
            return NotImplemented
        node, value = _operand(other)
        return self.tracer.decide(at_most(add(self.node, shift), node), self.value + shift <= value)

    def __le__(self, other: Any) -> Any:
        return self._is_at_most(other, 0)

    def __lt__(self, other: Any) -> Any:
        return self._is_at_most(other, 1)

    def __gt__(self, other: Any) -> Any:
        answer = self._is_at_most(other, 0)
        return answer if answer is NotImplemented else not answer

    def __ge__(self, other: Any) -> Any:
        answer = self._is_at_most(other, 1)
        return answer if answer is NotImplemented else not answer

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Traced | int):
            return False
        node, value = _operand(other)
        return self.tracer.decide(equal(self.node, node), self.value == value)

    def __bool__(self) -> bool:
        return self != 0

    def __int__(self) -> int:
        self.tracer.decide(equal(self.node, self.value), True)
        return self.value

    __index__ = __int__

    def __hash__(self) -> int:
        return hash(int(self))

    def bit_length(self) -> int:
        """Return the number of bits, and record it as a decision."""
        return int(self).bit_length()

    def __repr__(self) -> str:
        return f"Traced({self.value})"


def _operand(value: Traced | int) -> tuple[Num, int]:
    """Return an operand as a formula, and its value in the current config."""
    return (value.node, value.value) if isinstance(value, Traced) else (value, value)


class TracedChoice:
    """A knob value that is not a number: a name or a bool."""

    __slots__ = ("knob", "tracer", "value", "values")

    def __init__(self, tracer: Tracer, knob: int, values: tuple[Any, ...], value: Any) -> None:
        self.tracer, self.knob, self.values, self.value = tracer, knob, values, value

    def _decide(self, test: Callable[[Any], bool]) -> bool:
        table = [float(test(value)) for value in self.values]
        return self.tracer.decide(self.tracer.graph.knob(self.knob, table), test(self.value))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TracedChoice):
            other = other.plain()
        return self._decide(lambda value: bool(value == other))

    def __bool__(self) -> bool:
        return self._decide(bool)

    def plain(self) -> Any:
        """Return the plain value, and record a decision on it."""
        self._decide(lambda value: value_key(value) == value_key(self.value))
        return self.value

    def __hash__(self) -> int:
        return hash(self.plain())

    def __int__(self) -> int:
        return int(self.plain())

    __index__ = __int__

    def __str__(self) -> str:
        return str(self.plain())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.plain(), name)


class TracedConfig(Config):
    """A config whose values record the comparisons that are made with them."""

    __slots__ = ("_traced",)

    def __init__(self, space: Space, config: Config, tracer: Tracer) -> None:
        super().__init__(config.values, config.fingerprint)
        self._traced = {
            knob.name: _traced(tracer, number, knob.values, config[knob.name])
            for number, knob in enumerate(space.knobs)
        }

    @property
    def values(self) -> Any:
        """The recording value of each knob."""
        return self._traced

    def __getitem__(self, name: str) -> Any:
        return self._traced[name] if name in self._traced else super().__getitem__(name)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self._traced:
            return self._traced[name]
        raise AttributeError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._traced)


def _traced(tracer: Tracer, number: int, values: tuple[Any, ...], value: Any) -> Any:
    if len(values) == 1:
        return value
    if all(type(item) is int for item in values):
        return Traced(tracer, tracer.graph.knob(number, values), value)
    if isinstance(value, tuple) and len({len(item) for item in values}) == 1:
        columns = zip(*values, strict=True)
        return tuple(
            _traced_item(tracer, number, column, item)
            for column, item in zip(columns, value, strict=True)
        )
    return TracedChoice(tracer, number, values, value)


def _traced_item(tracer: Tracer, number: int, values: tuple[Any, ...], value: Any) -> Any:
    """Return the recording value of one item of a knob's tuples; if constant, the plain value."""
    return value if len(set(values)) == 1 else _traced(tracer, number, values, value)


def trace(
    operator: Operator, workload: Workload, target: Target, space: Space, point: int, graph: Graph
) -> Skeleton:
    """Run an operator's template for a point, and return the skeleton that the point belongs to.

    Parameters
    ----------
    operator, workload, target, space
        The operator and its template, the target, and the space of its configs.
    point : int
        Index of a config that the space's filters allow.
    graph : Graph
        The graph of the formulas of the space.
    """
    tracer = Tracer(graph)
    cfg = TracedConfig(space, space.at(point), tracer)
    try:
        s, _ = operator.template(workload, target, cfg, symbolic_schedule)
    except UserError:
        if not _is_refused(operator, workload, target, space.at(point)):
            raise
        return Skeleton(tuple(tracer.decisions), None, tracer.symbols)
    return Skeleton(tuple(tracer.decisions), s.state, tracer.symbols)


def _is_refused(operator: Operator, workload: Workload, target: Target, cfg: Config) -> bool:
    """Return whether the template refuses the config itself, not only its symbolic schedule."""
    try:
        operator.template(workload, target, cfg)
    except UserError:
        return True
    return False
