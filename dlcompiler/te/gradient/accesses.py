"""The adjoint of a tensor from the places that read it: index expressions, inverted."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce

from dlcompiler.arith import Interval, solve
from dlcompiler.ir import (
    Axis,
    Const,
    Expr,
    Extent,
    IfThenElse,
    Reduce,
    Select,
    TensorLoad,
    Var,
    binary,
    compare,
    const,
    substitute,
)
from dlcompiler.te.arithmetic import all as all_of
from dlcompiler.te.definition import checked_shape, define_tensors
from dlcompiler.te.gradient.body import Adjoint
from dlcompiler.te.reducers.reductions import SUM
from dlcompiler.te.tensor import ComputeOp, Tensor

Equation = tuple[Expr, Expr]


@dataclass(frozen=True, eq=False)
class Use:
    """An element that an operation reads, and what the operation adds to its adjoint."""

    reader: ComputeOp
    load: TensorLoad
    adjoint: Adjoint
    """At a point of the reader's axes, those it reduces over included, and of `Space.prefix`."""
    equations: tuple[Equation, ...] = ()
    """Where it adds anything."""

    @property
    def tensor(self) -> Tensor:
        """The tensor that is read."""
        assert isinstance(self.load.tensor, Tensor)
        return self.load.tensor


@dataclass(frozen=True, eq=False)
class Space:
    """What all adjoints of one gradient have in common."""

    prefix: tuple[Axis, ...]
    """Their first dimensions: what is differentiated, or that of the head before its shape."""
    symbols: Mapping[Var, Interval]
    """The ranges of symbols."""
    where: str
    """What to call the operation in errors."""


@dataclass(frozen=True, eq=False)
class _Part:
    """What one use adds: `value` at `axes`, summed over `reduced`, where all `conditions` hold."""

    axes: tuple[Axis, ...]
    reduced: tuple[Axis, ...]
    value: Expr
    conditions: tuple[Expr, ...]


def adjoint_tensor(tensor: Tensor, uses: Sequence[Use], space: Space) -> Tensor:
    """Return the adjoint of a tensor: for each element, the sum over all points that read it.

    Returns
    -------
    Tensor
        It has the dimensions of `Space.prefix`, then those of `tensor`. Where it is a sum of
        several terms, each that is summed over axes is a stage of its own, named after its reader.
    """
    checked_shape([*(axis.extent for axis in space.prefix), *tensor.shape], space.where)
    name = f"{tensor.name}.grad"
    parts = [(use, _part(tensor, use, space)) for use in uses]
    known = [(use, part) for use, part in parts if part is not None]
    if len(known) == 1 and known[0][1].reduced:
        return _summed(name, known[0][1], space)
    axes = _axes(tensor, uses, space)
    terms = [_term(f"{name}.{use.reader.name}", part, axes, space) for use, part in known]
    total = reduce(partial(binary, "add"), terms) if terms else const(0, tensor.dtype)
    return define_tensors(name, axes, (total,), space.where)[0]


def identity(tensor: Tensor, space: Space) -> Tensor:
    """Return the derivative of a tensor by itself, of which the prefix are the axes."""
    axes = _axes(tensor, [], space)
    rank = tensor.ndim
    equal = [compare("eq", a.var, b.var) for a, b in zip(axes[:rank], axes[rank:], strict=True)]
    value: Expr = const(1, tensor.dtype)
    if equal:
        value = Select(all_of(*equal), value, const(0, tensor.dtype))
    return define_tensors(f"{tensor.name}.grad", axes, (value,), space.where)[0]


def _part(tensor: Tensor, use: Use, space: Space) -> _Part | None:
    """Return what a use adds to the adjoint of a tensor; None where that is nothing."""
    axes = _axes(tensor, [use], space)
    prefix, own = axes[: len(space.prefix)], axes[len(space.prefix) :]
    renamed: dict[Var, Expr] = {
        old.var: new.var for old, new in zip(space.prefix, prefix, strict=True)
    }
    indices = [(index, axis.var) for index, axis in zip(use.load.indices, own, strict=True)]
    others = [(a, substitute(b, renamed)) for a, b in use.equations]
    unknowns = {axis.var: axis.extent for axis in (*use.reader.axis, *use.reader.reduce_axis)}
    given = {axis.var: axis.extent for axis in axes}
    solution = solve([*indices, *others], unknowns, given, space.symbols)
    if solution is None:
        return None
    adjoint, guard = use.adjoint, use.adjoint.guard
    conditions = solution.conditions
    if guard is not None and guard.is_lazy:
        adjoint = Adjoint(adjoint.value)
        conditions += tuple(solution.at(substitute(x, renamed)) for x in guard.conditions)
    value = solution.at(substitute(adjoint.everywhere(), renamed))
    is_zero = isinstance(value, Const) and value.value == 0
    if is_zero or any(isinstance(x, Const) and not x.value for x in conditions):
        return None
    conditions = tuple(x for x in conditions if not isinstance(x, Const))
    reduced = _reduction_axes(solution.free, axes)
    summed: dict[Var, Expr] = {var: axis.var for var, axis in reduced.items()}
    conditions = tuple(substitute(x, summed) for x in conditions)
    return _Part(axes, tuple(reduced.values()), substitute(value, summed), conditions)


def _summed(name: str, part: _Part, space: Space) -> Tensor:
    """Return the stage of a part that is summed over axes."""
    condition = all_of(*part.conditions) if part.conditions else None
    body = Reduce(SUM, (part.value,), part.reduced, condition)
    return define_tensors(name, part.axes, (body,), space.where)[0]


def _term(name: str, part: _Part, axes: tuple[Axis, ...], space: Space) -> Expr:
    """Return what a part is at `axes`."""
    if part.reduced:
        return TensorLoad(_summed(name, part, space), tuple(axis.var for axis in axes))
    value = part.value
    if part.conditions:
        value = IfThenElse(all_of(*part.conditions), value, const(0, value.dtype))
    renamed: dict[Var, Expr] = {old.var: new.var for old, new in zip(part.axes, axes, strict=True)}
    return substitute(value, renamed)


# -- names ----------------------------------------------------------------------------------------


def _axes(tensor: Tensor, uses: Sequence[Use], space: Space) -> tuple[Axis, ...]:
    """Return new axes for an adjoint, named as those of the tensor, or as its first reader's."""
    names: list[str] = []
    for n in range(tensor.ndim):
        names.append(_unique(_dimension_name(tensor, n, uses), names))
    prefix = [_unique(axis.name, names) for axis in space.prefix]
    extents = (*(axis.extent for axis in space.prefix), *tensor.shape)
    return tuple(Axis(name, n, "data") for name, n in zip([*prefix, *names], extents, strict=True))


def _reduction_axes(free: Mapping[Var, Extent], axes: Sequence[Axis]) -> dict[Var, Axis]:
    """Return an axis for each variable that is left, named as it where `axes` leave the name."""
    used = [axis.name for axis in axes]
    result: dict[Var, Axis] = {}
    for var, extent in free.items():
        used.append(_unique(var.name, used))
        result[var] = Axis(used[-1], extent, "reduce")
    return result


def _dimension_name(tensor: Tensor, n: int, uses: Sequence[Use]) -> str:
    if len(tensor.axis) == tensor.ndim:
        return tensor.axis[n].name
    for use in uses:
        index = use.load.indices[n]
        if isinstance(index, Var) and not index.is_symbol:
            return index.name
    return f"ax{n}"


def _unique(name: str, used: Collection[str]) -> str:
    """Return a name that is not used yet."""
    names = (f"{name}_{n}" if n else name for n in itertools.count())
    return next(candidate for candidate in names if candidate not in used)
