"""Nests of loops around one statement: what one instruction, or a few, can compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dlcompiler.arith import Affine, Analyzer
from dlcompiler.codegen.accelerator.forms import (
    Bound,
    Form,
    Number,
    Slots,
    bounds_of,
    conjuncts,
    form_of,
    host_number,
)
from dlcompiler.ir import Const, Expr, For, If, IntrinsicCall, Seq, Stmt, Store, Var


@dataclass(frozen=True, slots=True)
class Nest:
    """Loops, one inside another, around one statement, with conditions."""

    loops: tuple[For, ...]
    """Outermost first."""
    conditions: tuple[Expr, ...]
    leaf: Store | IntrinsicCall

    def under(self, *pragmas: str) -> tuple[Var, ...]:
        """Return the variables of the loops from the first one on that has one of some pragmas."""
        for number, loop in enumerate(self.loops):
            if any(name in pragmas for name, _ in loop.annotations):
                return tuple(inside.var for inside in self.loops[number:])
        return ()

    @property
    def extents(self) -> dict[Var, int]:
        """Extent of each loop variable."""
        return {
            loop.var: int(loop.extent.value)
            for loop in self.loops
            if isinstance(loop.extent, Const)
        }


def nest_of(stmt: Stmt) -> Nest | None:
    """Return a statement as a nest; None if it is more than loops around one store or call."""
    loops: list[For] = []
    conditions: list[Expr] = []
    while True:
        match stmt:
            case For(_, Const(), kind) if kind != "vthread":
                loops.append(stmt)
                stmt = stmt.body
            case If(condition, then, None):
                conditions += conjuncts(condition)
                stmt = then
            case Seq((only,)):
                stmt = only
            case Store() | IntrinsicCall():
                return Nest(tuple(loops), tuple(conditions), stmt)
            case _:
                return None


@dataclass(frozen=True, slots=True)
class HostLoop:
    """A loop of a nest that the host runs, an instruction for each iteration."""

    slot: int
    extent: int


@dataclass(slots=True)
class Split:
    """A nest with its loops divided into those of the host and those of the instruction."""

    nest: Nest
    analyzer: Analyzer
    slots: Slots
    sums: Sequence[Affine]
    """The indices that must be forms over the inner loops."""
    pads: tuple[Expr, ...] = ()
    """Conditions outside which a load writes zeros."""
    inner: list[Var] = field(default_factory=list)
    """Variables of the instruction's loops, outermost first."""

    def __post_init__(self) -> None:
        self.inner = [loop.var for loop in self.nest.loops]
        self._leave_out()

    def leave(self, var: Var) -> None:
        """Let the host run the loop of an inner variable."""
        self.inner.remove(var)
        self._leave_out()

    def _leave_out(self) -> None:
        """Leave loops to the host until all indices and conditions have their forms."""
        while (odd := self._odd()) is not None:
            self.inner.remove(odd)

    def _odd(self) -> Var | None:
        for total in self.sums:
            if isinstance(found := form_of(total, self.inner, self.analyzer), Var):
                return found
        for condition in (*self.nest.conditions, *self.pads):
            if isinstance(bounds := bounds_of(condition, self.inner, self.analyzer), Var):
                return bounds
        return None

    def forms(self) -> list[Form]:
        """Return the form of each sum."""
        found = (form_of(total, self.inner, self.analyzer) for total in self.sums)
        return [form for form in found if isinstance(form, Form)]

    @property
    def host(self) -> tuple[HostLoop, ...]:
        """The loops of the nest that the host runs, outermost first."""
        extents, inner = self.nest.extents, set(self.inner)
        return tuple(
            HostLoop(self.slots[var], extent) for var, extent in extents.items() if var not in inner
        )

    def number(self, expr: Expr) -> Number:
        """Return the function of an expression of the host's variables."""
        return host_number(expr, self.slots)

    def bounds(self, conditions: Sequence[Expr]) -> tuple[Bound, ...]:
        """Return the bounds of some conditions, ready to be computed."""
        found: list[Bound] = []
        for condition in conditions:
            bounds = bounds_of(condition, self.inner, self.analyzer)
            assert not isinstance(bounds, Var)
            found += (Bound(self.number(b.base), b.var, b.factor) for b in bounds)
        return tuple(found)


def limits_of(
    bounds: Sequence[Bound], numbers: Sequence[int], extents: dict[Var, int]
) -> dict[Var, tuple[int, int]] | None:
    """Return the range of each bounded inner loop; None if a condition on the host is false."""
    limits: dict[Var, tuple[int, int]] = {}
    for bound in bounds:
        base = bound.base(numbers)
        if bound.var is None:
            if not base:
                return None
            continue
        extent = extents[bound.var]
        low, high = bound.limits(base, extent)
        before = limits.get(bound.var, (0, extent))
        limits[bound.var] = max(before[0], low), min(before[1], high)
    return limits
