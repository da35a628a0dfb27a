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
    """A program over buffers and numbers: `params` are given by the caller, inputs before outputs.

    `outputs` names the parameters that are written. `symbols` are the extents that the shapes of
    the caller's arrays give; a parameter that is a variable of dtype ``index`` is one of them too.
    `axes` tells, for the stage that a store belongs to (``C`` or ``C.init``), which loops it must
    be reachable from: passes may delete loops, but never lose where a store came from.
    """

    name: str
    params: tuple[Buffer | Var, ...]
    outputs: tuple[Buffer, ...]
    body: Stmt
    axes: Mapping[StepRef, frozenset[StepRef]] = field(default_factory=dict)
    symbols: tuple[Var, ...] = ()
    checks: tuple[tuple[Expr, str], ...] = ()
    """What must hold of the symbols in a call, each with what is wrong where it does not."""

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The parameters that are arrays."""
        return tuple(param for param in self.params if isinstance(param, Buffer))

    @property
    def variables(self) -> tuple[Var, ...]:
        """The numbers that the body may use: parameters, and extents from the arrays' shapes."""
        given = (param for param in self.params if isinstance(param, Var))
        return tuple(dict.fromkeys((*given, *self.symbols)))

    def with_body(self, body: Stmt) -> PrimFunc:
        """Return the same function with another body; itself when nothing changed."""
        return self if body is self.body else replace(self, body=body)

    def __str__(self) -> str:
        return print_func(self).text

    def __repr__(self) -> str:
        return f"PrimFunc({self.name}, {len(self.params)} parameters)"

    def _repr_html_(self) -> str:
        return render("func", self)
