"""A function of the loop IR."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dlcompiler.display import render
from dlcompiler.ir.expr import Expr, Var
from dlcompiler.ir.printer import print_func
from dlcompiler.ir.stmt import Buffer, StepRef, Stmt


@dataclass(frozen=True, slots=True, eq=False)
class PrimFunc:
    """A function of the loop IR; its `params` are buffers and numbers, inputs before outputs.

    `outputs` are the parameters that are written. `symbols` are the extents that are inferred from
    the shapes of the arguments; a parameter that is a variable of dtype ``index`` is also one of
    them. `axes` maps the stage of a store (``C`` or ``C.init``) to the loops in its origin: passes
    may delete loops, but must keep the origin of each store.
    """

    name: str
    params: tuple[Buffer | Var, ...]
    outputs: tuple[Buffer, ...]
    body: Stmt
    axes: Mapping[StepRef, frozenset[StepRef]] = field(default_factory=dict)
    symbols: tuple[Var, ...] = ()
    checks: tuple[tuple[Expr, str], ...] = ()
    """Conditions on the symbols, checked in each call, with the message of a failure."""
    is_in_place: bool = False
    """Whether an output may be the array of an input: each element is read before it is stored."""

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The parameters that are arrays."""
        return tuple(param for param in self.params if isinstance(param, Buffer))

    @property
    def variables(self) -> tuple[Var, ...]:
        """The variables that the body may use: number parameters, and extents of the arrays."""
        given = (param for param in self.params if isinstance(param, Var))
        return tuple(dict.fromkeys((*given, *self.symbols)))

    def with_body(self, body: Stmt) -> PrimFunc:
        """Return the function with another body, or the same object if the body is unchanged."""
        return self if body is self.body else replace(self, body=body)

    def __str__(self) -> str:
        return print_func(self).text

    def __repr__(self) -> str:
        return f"PrimFunc({self.name}, {len(self.params)} parameters)"

    def _repr_html_(self) -> str:
        return render("func", self)
