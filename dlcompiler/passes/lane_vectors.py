"""Build the vector expressions whose lanes are the values of a scalar expression in a loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dlcompiler import dtypes
from dlcompiler.ir import (
    Binary,
    Broadcast,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Load,
    Logical,
    Not,
    Ramp,
    Select,
    Var,
    binary,
    index_const,
    walk,
)
from dlcompiler.passes.lane_guards import has_loads


class ScalarOnlyError(Exception):
    """Raised for an expression or statement that has no vector form."""


@dataclass(frozen=True, slots=True, eq=False)
class Mask:
    """The active lanes."""

    on: Var
    """A vector of conditions."""
    is_some: bool
    """Whether at least one lane is certainly active: a load that all lanes share is then safe."""


class LaneVectors:
    """Vectorizes the expressions of one statement, or of one condition.

    Both sides of a choice that differs between lanes are computed in all lanes, but a mask limits
    loads to the lanes that choose the side. Masks are variables, computed before the statement.

    Parameters
    ----------
    var
        The variable of the lanes.
    first
        Value of `var` in the first lane.
    lanes
        Number of lanes.
    known
        The vectors of other variables.
    numbers
        Counter that makes the names of masks unique.
    """

    def __init__(
        self, var: Var, first: int, lanes: int, known: Mapping[Var, Var], numbers: Iterator[int]
    ) -> None:
        self.var = var
        self.first = first
        self.lanes = lanes
        self.known = known
        self.numbers = numbers
        self.masks: list[tuple[Var, Expr]] = []
        """The masks that the vectors need, in the order to compute them."""
        # By identity of an expression and a mask, which are kept alive with the vector.
        self._memo: dict[tuple[int, int], tuple[Expr, Expr, Mask | None]] = {}

    def vector(self, expr: Expr, mask: Mask | None) -> Expr:
        """Return the vector of an expression; a scalar if all lanes agree."""
        key = id(expr), id(mask)
        known = self._memo.get(key)
        if known is None:
            known = self._memo[key] = (expr, self._vector(expr, mask), mask)
        return known[1]

    def whole(self, expr: Expr, mask: Mask | None) -> Expr:
        """Return the vector of an expression, also if all lanes agree."""
        return self.widen(self.vector(expr, mask))

    def widen(self, expr: Expr) -> Expr:
        """Return a scalar as a vector of equal lanes; a vector is returned unchanged."""
        return expr if dtypes.lanes(expr.dtype) > 1 else Broadcast(expr, self.lanes)

    def mask(self, condition: Expr, outer: Mask | None, *, is_some: bool = False) -> Mask:
        """Return the mask of the lanes that are active in `outer` and where a condition holds."""
        if outer is not None:
            condition = Logical("and", outer.on, condition)
        number = next(self.numbers)
        on = Var(f"{self.var.name}.on{number or ''}", f"boolx{self.lanes}")
        self.masks.append((on, condition))
        return Mask(on, is_some)

    def _vector(self, expr: Expr, mask: Mask | None) -> Expr:  # noqa: C901  one case per node
        match expr:
            case Var():
                if expr is self.var:
                    return Ramp(index_const(self.first), index_const(1), self.lanes)
                return self.known.get(expr, expr)
            case Const():
                return expr
            case Binary(_, a, b):
                return self._binary(expr, self.vector(a, mask), self.vector(b, mask))
            case Compare(op, a, b):
                x, y = self._pair(a, b, mask)
                return expr if x is a and y is b else Compare(op, x, y)
            case Logical():
                return self._logical(expr, mask)
            case Not(value):
                x = self.vector(value, mask)
                return expr if x is value else Not(x)
            case Cast(value, dtype):
                x = self.vector(value, mask)
                lanes = dtypes.lanes(x.dtype)
                return expr if x is value else Cast(x, dtypes.with_lanes(dtype, lanes))
            case Select(condition, a, b):
                return self._select(expr, *(self.vector(x, mask) for x in (condition, a, b)))
            case IfThenElse():
                return self._choice(expr, mask)
            case Call("likely", (value,), _) if not self._is_shared(value):
                return self.vector(value, mask)
            case Call(name, args, dtype):
                new = tuple(self.vector(arg, mask) for arg in args)
                if all(x is y for x, y in zip(new, args, strict=True)):
                    return expr
                if all(dtypes.lanes(x.dtype) == 1 for x in new):
                    return Call(name, new, dtype)
                vector = dtypes.with_lanes(dtype, self.lanes)
                return Call(name, tuple(self.widen(x) for x in new), vector)
            case Load():
                return self._load(expr, mask)
        raise ScalarOnlyError

    def _load(self, load: Load, mask: Mask | None) -> Expr:
        if load.predicate is not None:
            mask = self.mask(self.whole(load.predicate, mask), mask)
        indices = tuple(self.vector(index, mask) for index in load.indices)
        if any(dtypes.lanes(index.dtype) > 1 for index in indices):
            return Load(load.buffer, indices, None if mask is None else mask.on)
        if mask is None or mask.is_some:
            return load
        if not indices:
            raise ScalarOnlyError
        return Load(load.buffer, tuple(map(self.widen, indices)), mask.on)

    def _logical(self, expr: Logical, mask: Mask | None) -> Expr:
        if not has_loads(expr.b):
            x, y = self._pair(expr.a, expr.b, mask)
            return expr if x is expr.a and y is expr.b else Logical(expr.op, x, y)
        x = self.vector(expr.a, mask)
        if self._is_shared(expr.b) and dtypes.lanes(x.dtype) == 1 and self._may_read_shared(mask):
            return expr
        x = self.widen(x)
        y = self.whole(expr.b, self.mask(x if expr.op == "and" else Not(x), mask))
        return Logical(expr.op, x, y)

    def _choice(self, expr: IfThenElse, mask: Mask | None) -> Expr:
        condition = self.vector(expr.condition, mask)
        is_shared = dtypes.lanes(condition.dtype) == 1
        guards_loads = has_loads(expr.a) or has_loads(expr.b)
        if not is_shared and not guards_loads:
            sides = (self.vector(side, mask) for side in (expr.a, expr.b))
            return self._select(expr, condition, *sides)
        if is_shared and not (guards_loads and self._needs_masks(expr, mask)):
            x, y = self._pair(expr.a, expr.b, mask)
            is_same = condition is expr.condition and x is expr.a and y is expr.b
            return expr if is_same else IfThenElse(condition, x, y)
        decided = self.mask(self.widen(condition), mask)
        x = self.whole(expr.a, decided)
        if isinstance(x, Load) and x.predicate is decided.on and _is_zero(expr.b):
            return x
        other = self.mask(Not(decided.on), mask) if has_loads(expr.b) else mask
        return Select(decided.on, x, self.whole(expr.b, other))

    def _needs_masks(self, choice: IfThenElse, mask: Mask | None) -> bool:
        """Tell whether a choice with the same condition in all lanes needs masks instead of a jump.

        Masks are computed before the statement, so a mask that reads memory would read too early.
        """
        if not self._may_read_shared(mask):
            return True
        sides = (choice.a, choice.b)
        return not all(map(self._is_shared, sides)) and any(map(_decides_by_loads, sides))

    def _is_shared(self, expr: Expr) -> bool:
        """Tell whether all lanes agree on an expression."""
        return not any(
            node is self.var or node in self.known for node in walk(expr) if isinstance(node, Var)
        )

    def _may_read_shared(self, mask: Mask | None) -> bool:
        """Tell whether a load that is the same in all lanes is safe: a lane is surely active."""
        return mask is None or mask.is_some

    def _pair(self, a: Expr, b: Expr, mask: Mask | None) -> tuple[Expr, Expr]:
        x, y = self.vector(a, mask), self.vector(b, mask)
        if dtypes.lanes(x.dtype) == dtypes.lanes(y.dtype):
            return x, y
        return self.widen(x), self.widen(y)

    def _select(self, expr: Select | IfThenElse, c: Expr, x: Expr, y: Expr) -> Expr:
        if c is expr.condition and x is expr.a and y is expr.b:
            return expr
        if all(dtypes.lanes(item.dtype) == 1 for item in (c, x, y)):
            return type(expr)(c, x, y)
        return Select(self.widen(c), self.widen(x), self.widen(y))

    def _binary(self, expr: Binary, a: Expr, b: Expr) -> Expr:
        if dtypes.lanes(a.dtype) == 1 and dtypes.lanes(b.dtype) == 1:
            return expr if a is expr.a and b is expr.b else Binary(expr.op, a, b)
        match expr.op, a, b:
            case "add", Ramp(base, stride, lanes), _ if dtypes.lanes(b.dtype) == 1:
                return Ramp(binary("add", base, b), stride, lanes)
            case "add", _, Ramp(base, stride, lanes) if dtypes.lanes(a.dtype) == 1:
                return Ramp(binary("add", a, base), stride, lanes)
            case "sub", Ramp(base, stride, lanes), _ if dtypes.lanes(b.dtype) == 1:
                return Ramp(binary("sub", base, b), stride, lanes)
            case "mul", Ramp(base, stride, lanes), _ if dtypes.lanes(b.dtype) == 1:
                return Ramp(binary("mul", base, b), binary("mul", stride, b), lanes)
            case "mul", _, Ramp(base, stride, lanes) if dtypes.lanes(a.dtype) == 1:
                return Ramp(binary("mul", a, base), binary("mul", a, stride), lanes)
        return Binary(expr.op, self.widen(a), self.widen(b))


def _decides_by_loads(expr: Expr) -> bool:
    """Tell whether a condition inside `expr` reads memory, so it must not be evaluated early."""
    return any(
        has_loads(node.condition if isinstance(node, IfThenElse) else node.a)
        for node in walk(expr)
        if isinstance(node, IfThenElse | Logical)
    ) or any(isinstance(node, Load) and node.predicate is not None for node in walk(expr))


def _is_zero(expr: Expr) -> bool:
    match expr:
        case Const(value, _):
            return str(value) in ("0", "0.0", "False")
    return False
