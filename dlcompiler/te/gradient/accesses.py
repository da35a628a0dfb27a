"""The adjoint of a tensor: for each element, find the points that read it, and add them up."""

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
    """A read of an element, and its contribution to the adjoint of the tensor."""

    reader: ComputeOp
    load: TensorLoad
    adjoint: Adjoint
    """The contribution, as an expression of the reader's axes (data and reduction axes) and of
    `Space.prefix`."""
    equations: tuple[Equation, ...] = ()
    """Pairs of expressions; the read contributes only at points where each pair is equal."""

    @property
    def tensor(self) -> Tensor:
        """The tensor that is read."""
        assert isinstance(self.load.tensor, Tensor)
        return self.load.tensor


@dataclass(frozen=True, eq=False)
class Space:
    """The context of one gradient, common to all its adjoints."""

    prefix: tuple[Axis, ...]
    """First dimensions of each adjoint: the dimensions of the output, or the prefix of the head."""
    symbols: Mapping[Var, Interval]
    """The ranges of symbols."""
    where: str
    """Names the operation in errors."""


@dataclass(frozen=True, eq=False)
class _Part:
    """Contribution of a use: `value` at `axes`, summed over `reduced` where `conditions` hold."""

    axes: tuple[Axis, ...]
    reduced: tuple[Axis, ...]
    value: Expr
    conditions: tuple[Expr, ...]


def adjoint_tensor(tensor: Tensor, uses: Sequence[Use], space: Space) -> Tensor:
    """Return the adjoint of a tensor: for each element, the sum over all points that read it.

    Returns
    -------
    Tensor
        It has the dimensions of `Space.prefix`, then those of `tensor`. If several uses contribute,
        each one that needs a reduction becomes a stage of its own, named after its reader.
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
    """Return the derivative of a tensor with respect to itself: 1 for the same element, else 0."""
    axes = _axes(tensor, [], space)
    rank = tensor.ndim
    equal = [compare("eq", a.var, b.var) for a, b in zip(axes[:rank], axes[rank:], strict=True)]
    value: Expr = const(1, tensor.dtype)
    if equal:
        value = Select(all_of(*equal), value, const(0, tensor.dtype))
    return define_tensors(f"{tensor.name}.grad", axes, (value,), space.where)[0]


def _part(tensor: Tensor, use: Use, space: Space) -> _Part | None:
    """Return the contribution of a use to the adjoint of a tensor; None if it is 0."""
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
    """Define the stage that sums a part over its reduction axes."""
    condition = all_of(*part.conditions) if part.conditions else None
    body = Reduce(SUM, (part.value,), part.reduced, condition)
    return define_tensors(name, part.axes, (body,), space.where)[0]


def _term(name: str, part: _Part, axes: tuple[Axis, ...], space: Space) -> Expr:
    """Return a contribution as an expression of `axes`; for a sum, a read of a new stage."""
    if part.reduced:
        return TensorLoad(_summed(name, part, space), tuple(axis.var for axis in axes))
    value = part.value
    if part.conditions:
        value = IfThenElse(all_of(*part.conditions), value, const(0, value.dtype))
    renamed: dict[Var, Expr] = {old.var: new.var for old, new in zip(part.axes, axes, strict=True)}
    return substitute(value, renamed)


# -- names ----------------------------------------------------------------------------------------


def _axes(tensor: Tensor, uses: Sequence[Use], space: Space) -> tuple[Axis, ...]:
    """Return new axes for an adjoint: those of the prefix, then one for each dimension."""
    names: list[str] = []
    for n in range(tensor.ndim):
        names.append(_unique(_dimension_name(tensor, n, uses), names))
    prefix = [_unique(axis.name, names) for axis in space.prefix]
    extents = (*(axis.extent for axis in space.prefix), *tensor.shape)
    return tuple(Axis(name, n, "data") for name, n in zip([*prefix, *names], extents, strict=True))


def _reduction_axes(free: Mapping[Var, Extent], axes: Sequence[Axis]) -> dict[Var, Axis]:
    """Return a reduction axis for each free variable, named like it unless the name is taken."""
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
