"""Reverse mode inside one expression: from its adjoint to those of the elements that it reads."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce

from dlcompiler import dtypes
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import (
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    IfThenElse,
    Not,
    Select,
    TensorHandle,
    TensorLoad,
    binary,
    cast,
    compare,
    const,
    structural_key,
)
from dlcompiler.te.arithmetic import all as all_of
from dlcompiler.te.arithmetic import any as any_of
from dlcompiler.te.gradient.rules import FUNCTIONS, OPERATIONS, STEPS, Rule


@dataclass(frozen=True, eq=False)
class Guard:
    """The conditions under which an adjoint is not 0."""

    conditions: tuple[Expr, ...]
    """All must hold; a condition may be evaluated only where those before it hold."""
    is_lazy: bool
    """Whether the adjoint itself may also be evaluated only where the conditions hold."""


@dataclass(frozen=True, eq=False)
class Adjoint:
    """The derivative of the output with respect to one value."""

    value: Expr
    guard: Guard | None = None

    def under(self, condition: Expr, *, is_lazy: bool) -> Adjoint:
        """Return the adjoint restricted to where `condition` also holds."""
        outer = self.guard or Guard((), False)
        guard = Guard((*outer.conditions, condition), outer.is_lazy or is_lazy)
        return Adjoint(self.value, guard)

    def everywhere(self) -> Expr:
        """Return the value as one expression that is 0 where the guard does not hold."""
        if self.guard is None:
            return self.value
        zero = const(0, self.value.dtype)
        condition = all_of(*self.guard.conditions)
        return _choice(condition, self.value, zero, is_lazy=self.guard.is_lazy)


def _choice(condition: Expr, a: Expr, b: Expr, *, is_lazy: bool) -> Expr:
    return IfThenElse(condition, a, b) if is_lazy else Select(condition, a, b)


def is_differentiable(root: Expr, wanted: Collection[TensorHandle]) -> bool:
    """Tell whether an expression has a derivative with respect to elements of `wanted`.

    It has none if they are used only in integers, conditions and indices, or by functions such as
    `floor`: these are constant between jumps.
    """
    return bool(_active_nodes(root, wanted))


def adjoints(
    root: Expr, seed: Adjoint, result: Expr, wanted: Collection[TensorHandle], where: str
) -> list[tuple[TensorLoad, Adjoint]]:
    """Return the adjoint of each element of `wanted` that an expression reads.

    Parameters
    ----------
    root
        An expression without a reduction.
    seed
        The adjoint of the expression.
    result
        An expression of its value: itself, or an element where it is stored.
    wanted
        The tensors whose elements need adjoints.
    where
        Names the operation in errors.

    Notes
    -----
    The adjoint of a value that is used several times is the sum over its uses. If each use is
    under conditions, the sum is evaluated where the conditions of any use hold. So nothing is
    evaluated where the expression itself does not evaluate it.
    """
    nodes = _active_nodes(root, wanted)
    given: dict[int, list[Adjoint]] = {key: [] for key in nodes}
    given[id(root)] = [seed]
    loads: dict[object, tuple[TensorLoad, list[Adjoint]]] = {}
    # Operands come before the nodes that use them, so in reverse order an adjoint is complete here.
    for key, node in reversed(nodes.items()):
        adjoint = _sum(given[key])
        if isinstance(node, TensorLoad):
            loads.setdefault(structural_key(node), (node, []))[1].append(adjoint)
            continue
        for operand, part in _parts(node, adjoint, result if node is root else node, where):
            if id(operand) in nodes:
                given[id(operand)].append(part)
    return [(load, _sum(parts)) for load, parts in loads.values()]


def _active_nodes(root: Expr, wanted: Collection[TensorHandle]) -> dict[int, Expr]:
    """Return the nodes between `root` and elements of `wanted`, by id; operands come first."""
    active: dict[int, Expr] = {}
    seen: set[int] = set()

    def visit(node: Expr) -> None:
        if id(node) in seen or not dtypes.is_float(node.dtype):
            return
        seen.add(id(node))
        below = _operands(node)
        for operand in below:
            visit(operand)
        is_read = isinstance(node, TensorLoad) and node.tensor in wanted
        if is_read or any(id(operand) in active for operand in below):
            active[id(node)] = node

    visit(root)
    return active


def _operands(node: Expr) -> tuple[Expr, ...]:
    """Return the operands with respect to which a node can be differentiated."""
    match node:
        case Binary(_, a, b) | Select(_, a, b) | IfThenElse(_, a, b):
            return a, b
        case Cast(value, _):
            return (value,)
        case Call(name, args, _) if name not in STEPS:
            return args
    return ()


def _parts(
    node: Expr, adjoint: Adjoint, result: Expr, where: str
) -> Iterator[tuple[Expr, Adjoint]]:
    """Yield each operand of a node with its adjoint, computed from the node's adjoint."""
    match node:
        case Select(condition, a, b) | IfThenElse(condition, a, b):
            yield from _sides(condition, a, b, adjoint, is_lazy=isinstance(node, IfThenElse))
        case Binary("max" | "min", a, b):
            wins = a >= b if node.op == "max" else a <= b
            # If `a` is NaN, it is the result and gets the adjoint, except beside a number: in
            # ``maximum(x, 0)`` (relu), a NaN gets 0.
            if not isinstance(b, Const):
                wins = any_of(wins, compare("ne", a, a))
            yield from _sides(wins, a, b, adjoint, is_lazy=False)
        case Cast(value, _):
            yield value, Adjoint(cast(adjoint.value, value.dtype), adjoint.guard)
        case Binary(op, a, b):
            yield from _by_rules(OPERATIONS[op], (a, b), adjoint, result)
        case Call(name, args, _) if name in FUNCTIONS:
            yield from _by_rules(FUNCTIONS[name], args, adjoint, result)
        case Call(name, _, _):
            raise ExpressionError(
                where, f"the derivative of {name} is not known", got=str(node),
                hint="use functions whose derivatives are known",
            )  # fmt: skip


def _sides(
    condition: Expr, a: Expr, b: Expr, adjoint: Adjoint, *, is_lazy: bool
) -> Iterator[tuple[Expr, Adjoint]]:
    yield a, adjoint.under(condition, is_lazy=is_lazy)
    yield b, adjoint.under(Not(condition), is_lazy=is_lazy)


def _by_rules(
    rules: Sequence[Rule], operands: Sequence[Expr], adjoint: Adjoint, result: Expr
) -> Iterator[tuple[Expr, Adjoint]]:
    for rule, operand in zip(rules, operands, strict=False):  # an integer operand has no rule
        yield operand, Adjoint(rule(adjoint.value, result, *operands), adjoint.guard)


# -- sums ------------------------------------------------------------------------------------------


def _sum(parts: Sequence[Adjoint]) -> Adjoint:
    """Add several adjoints of one value; the guard of the sum is that any of their guards holds."""
    sums = _grouped(parts)
    while (joined := _with_joined_sides(sums)) is not None:
        sums = _grouped(joined)
    if len(sums) == 1:
        return sums[0]
    return Adjoint(_total(part.everywhere() for part in sums), _either(sums))


def _grouped(parts: Sequence[Adjoint]) -> list[Adjoint]:
    """Add the adjoints that have the same conditions."""
    groups: dict[object, list[Adjoint]] = {}
    for part in parts:
        groups.setdefault(tuple(map(structural_key, _conditions(part))), []).append(part)
    return [Adjoint(_total(p.value for p in group), _either(group)) for group in groups.values()]


def _with_joined_sides(parts: Sequence[Adjoint]) -> list[Adjoint] | None:
    """Merge two adjoints under ``c`` and ``not c`` into a choice; None if there are no such two."""
    for then, otherwise in itertools.permutations(parts, 2):
        yes, no = _conditions(then), _conditions(otherwise)
        if not (no and len(yes) == len(no) == _common(yes, no) + 1 and isinstance(no[-1], Not)):
            continue
        if structural_key(no[-1].value) == structural_key(yes[-1]):
            is_lazy = _is_lazy(then, otherwise)
            value = _choice(yes[-1], then.value, otherwise.value, is_lazy=is_lazy)
            joined = Adjoint(value, Guard(yes[:-1], is_lazy) if yes[:-1] else None)
            return [joined, *(part for part in parts if part not in (then, otherwise))]
    return None


def _total(values: Iterable[Expr]) -> Expr:
    return reduce(partial(binary, "add"), values)


def _conditions(part: Adjoint) -> tuple[Expr, ...]:
    return () if part.guard is None else part.guard.conditions


def _is_lazy(*parts: Adjoint) -> bool:
    return any(part.guard is not None and part.guard.is_lazy for part in parts)


def _either(parts: Sequence[Adjoint]) -> Guard | None:
    """Return the guard of a sum: it holds where the guard of any of the adjoints holds."""
    first, *others = map(_conditions, parts)
    count = min(_common(first, other) for other in (first, *others))
    rests = [conditions[count:] for conditions in (first, *others)]
    common = first[:count]
    if all(rests):
        common = (*common, any_of(*(all_of(*rest) for rest in rests)))
    return Guard(common, _is_lazy(*parts)) if common else None


def _common(a: Sequence[Expr], b: Sequence[Expr]) -> int:
    """Return the number of leading conditions that two guards have in common."""
    same = (structural_key(x) == structural_key(y) for x, y in zip(a, b, strict=False))
    return sum(itertools.takewhile(bool, same))
