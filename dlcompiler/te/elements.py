"""Evaluation of an operation's expressions with NumPy, over a block of its iteration space."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from dlcompiler import dtypes
from dlcompiler.errors import ExpressionError, InternalError, ProgramError
from dlcompiler.ir import (
    Axis,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Logical,
    Not,
    Select,
    TensorHandle,
    TensorLoad,
    Var,
    numeric,
    walk,
)
from dlcompiler.ir.function_values import call_function
from dlcompiler.ir.numeric import Linear
from dlcompiler.te.element_plan import Plan
from dlcompiler.te.tensor import ComputeOp

Array: TypeAlias = np.ndarray[Any, Any]
Arrays: TypeAlias = Mapping[TensorHandle, Array]


@dataclass(frozen=True)
class Block:
    """A block (box) of an iteration space; dimension n of its arrays belongs to the n-th axis."""

    axes: tuple[Axis, ...]
    starts: tuple[int, ...]
    extents: tuple[int, ...]

    @staticmethod
    def whole(axes: tuple[Axis, ...]) -> Block:
        """Return the whole iteration space."""
        return Block(axes, (0,) * len(axes), tuple(axis.static_extent for axis in axes))

    def row(self, place: int) -> Block:
        """Return the part of the block in which the first axis has the value `place`."""
        return Block(self.axes, (place, *self.starts[1:]), (1, *self.extents[1:]))

    def times(self, axes: tuple[Axis, ...]) -> Block:
        """Return the block extended by more axes, with all of their values."""
        rest = Block.whole(axes)
        return Block(
            (*self.axes, *axes), (*self.starts, *rest.starts), (*self.extents, *rest.extents)
        )

    def place_in(self, box: Block) -> tuple[slice, ...]:
        """Return the slices that select this block in an array over `box` (the first axes only)."""
        triples = zip(self.starts, self.extents, box.starts, strict=False)
        return tuple(slice(start - at, start - at + extent) for start, extent, at in triples)

    def dimension(self, var: Var) -> int:
        """Return the dimension of the arrays that belongs to an axis, given its variable."""
        return next(n for n, axis in enumerate(self.axes) if axis.var is var)

    def values(self, var: Var) -> Array:
        """Return the values of an axis variable; the array has extent 1 in all other dimensions."""
        n = self.dimension(var)
        shape = [1] * len(self.axes)
        shape[n] = self.extents[n]
        return np.arange(self.starts[n], self.starts[n] + self.extents[n]).reshape(shape)


NOWHERE = Block((), (), ())
"""A block without dimensions: a single point."""


def blocks(box: Block, limit: int) -> Iterator[Block]:
    """Split a box of an iteration space into blocks of at most `limit` points."""
    shape = list(box.extents)
    for n in range(len(shape)):
        if math.prod(shape) <= limit:
            break
        shape[n] = max(1, limit // math.prod(shape[n + 1 :]))
    ends = [start + extent for start, extent in zip(box.starts, box.extents, strict=True)]
    triples = zip(box.starts, ends, shape, strict=True)
    steps = (range(start, end, max(size, 1)) for start, end, size in triples)
    for starts in itertools.product(*steps):
        parts = zip(starts, ends, shape, strict=True)
        extents = (min(size, end - start) for start, end, size in parts)
        yield Block(box.axes, starts, tuple(extents))


class Elements:
    """Evaluator of the expressions of one operation, for one block.

    Parameters
    ----------
    op
        The operation.
    arrays
        The values of the tensors that it reads.
    block
        The part of the iteration space.
    plan
        The nodes to treat specially; see `plan_of`.
    is_wide
        Compute all floats in float64; literals are first rounded to their dtypes.
    variables
        Values of variables that are not axes: the partial results that a reduction combines.
    """

    def __init__(
        self,
        op: ComputeOp,
        arrays: Arrays,
        block: Block,
        plan: Plan,
        *,
        is_wide: bool,
        variables: Mapping[Var, Array] | None = None,
    ) -> None:
        self.variables = variables or {}
        self.op = op
        self.arrays = arrays
        self.block = block
        self.plan = plan
        self.is_wide = is_wide
        self.memo: dict[tuple[int, int], tuple[Any, Any]] = {}

    def dtype(self, dtype: str) -> str:
        """Return the dtype in which values of `dtype` are computed."""
        return "float64" if self.is_wide and dtypes.is_float(dtype) else dtype

    def of(self, expr: Expr, mask: Any = None) -> Any:
        """Return the values of `expr` as an array that broadcasts to the shape of the block.

        Where `mask` is false the values are not defined, and no tensor is read.
        """
        if id(expr) in self.plan.inside:
            mask = None  # computed for all points, the values can be used under every mask
        if id(expr) not in self.plan.shared:
            return self.compute(expr, mask)
        key = (id(expr), id(mask))
        if key not in self.memo:  # the mask is kept with its result, so that its id stays its own
            self.memo[key] = (self.compute(expr, mask), mask)
        return self.memo[key][0]

    def compute(self, expr: Expr, mask: Any) -> Any:  # noqa: C901 - one case per node
        """Return the values of one node."""
        match expr:
            case Const():
                return self.literal(expr)
            case Var():
                return self.variables[expr] if expr in self.variables else self.block.values(expr)
            case Binary(op, a, b):
                function = numeric.binary_function(op, self.dtype(expr.dtype), vector=True)
                return function(self.of(a, mask), self.of(b, mask))
            case Compare(op, a, b):
                return numeric.compare_function(op)(self.of(a, mask), self.of(b, mask))
            case Logical(op, a, b):
                first = self.of(a, mask)
                second = self.of(b, both(mask, first if op == "and" else ~first))
                return first & second if op == "and" else first | second
            case Not(value):
                return np.logical_not(self.of(value, mask))
            case Cast(value, dtype):
                source, target = self.dtype(value.dtype), self.dtype(dtype)
                return numeric.cast_function(source, target, vector=True)(self.of(value, mask))
            case Call(name, args, _):
                # Bits are those of the declared dtype, also where floats are computed in float64.
                kind = args[0].dtype if name == "to_bits" else self.dtype(args[0].dtype)
                function = call_function(name, kind)
                return function(*(self.of(arg, mask) for arg in args))
            case Select(condition, a, b):
                return np.where(self.of(condition, mask), self.of(a, mask), self.of(b, mask))
            case IfThenElse(condition, a, b):
                chosen = self.of(condition, mask)
                return choose(chosen, mask, lambda m: self.of(a, m), lambda m: self.of(b, m))
            case TensorLoad():
                return self.load(expr, self.arrays, mask)
        raise InternalError(
            f"evaluate {self.op.name}", f"no meaning for {type(expr).__name__}", got=str(expr)
        )

    def literal(self, expr: Const) -> Any:
        """Return a literal, rounded to its dtype even if the computation is in float64."""
        if expr.dtype != "index":
            value = numeric.literal(expr.value, expr.dtype)
            return np.float64(value) if self.dtype(expr.dtype) != expr.dtype else value
        if not -(2**63) <= expr.value < 2**63:
            raise ExpressionError(
                f"evaluate {self.op.name}", "an index does not fit 64 bits", got=expr.value
            )
        return np.int64(expr.value)

    # -- reading tensors --------------------------------------------------------------------------

    def load(self, expr: TensorLoad, arrays: Arrays, mask: Any) -> Any:
        """Return elements of a tensor, taken from `arrays`."""
        array = arrays[expr.tensor]
        forms = [numeric.linear_form(index) for index in expr.indices]
        view = self.view(array, [form for form in forms if form is not None])
        return self.gather(expr, array, mask) if view is None else view

    def view(self, array: Array, forms: list[Linear]) -> Array | None:
        """Return a view of `array` if all indices are linear and inside it; None otherwise."""
        if len(forms) != array.ndim:
            return None
        shape, strides = [1] * len(self.block.axes), [0] * len(self.block.axes)
        origin = []
        dimensions = zip(forms, array.shape, array.strides, strict=True)
        for (terms, constant), extent, stride in dimensions:
            low = high = first = constant
            for var, factor in terms.items():
                n = self.block.dimension(var)
                start, count = self.block.starts[n], self.block.extents[n]
                ends = (factor * start, factor * (start + count - 1))
                low, high, first = low + min(ends), high + max(ends), first + ends[0]
                shape[n] = count
                strides[n] += factor * stride
            if low < 0 or high >= extent:
                return None
            origin.append(slice(first, None))
        return as_strided(array[tuple(origin)], shape, strides, writeable=False)

    def gather(self, expr: TensorLoad, array: Array, mask: Any) -> Any:
        """Return elements at any indices; one that is outside is an error where `mask` holds."""
        indices = [np.asarray(self.of(index, mask)) for index in expr.indices]
        pairs = zip(indices, array.shape, strict=True)
        outside = [(index < 0) | (index >= extent) for index, extent in pairs]
        if any(part.any() for part in outside):
            wrong = np.logical_or.reduce(np.broadcast_arrays(*outside))
            wrong = wrong if mask is None else wrong & mask
            if wrong.any():
                self.fail(expr, indices, wrong)
            if array.size == 0:
                return np.zeros((), array.dtype)
            bounds = zip(indices, array.shape, strict=True)
            indices = [np.clip(index, 0, extent - 1) for index, extent in bounds]
        return array[tuple(indices)]

    def fail(self, expr: TensorLoad, indices: list[Array], wrong: Array) -> NoReturn:
        """Raise the error for the first point at which an index is out of bounds."""
        wrong, *indices = np.broadcast_arrays(wrong, *indices)
        point = tuple(np.argwhere(wrong)[0].tolist()) if wrong.ndim else ()
        index = tuple(int(values[point]) for values in indices)
        place = next(n for n, i in enumerate(index) if not 0 <= i < expr.tensor.shape[n])
        offsets = point or (0,) * len(self.block.axes)
        triples = zip(self.block.axes, self.block.starts, offsets, strict=True)
        name, extent = expr.tensor.name, expr.tensor.shape[place]
        axes = ", ".join(axis.name for axis in self.op.axis) or "()"
        raise ProgramError(
            f"evaluate {self.op.name}",
            f"{name}[{', '.join(map(str, index))}] is out of bounds",
            kind="out_of_bounds",
            buffer=name,
            index=index,
            loops=tuple((axis.name, axis.start + start + n) for axis, start, n in triples),
            got=f"{index[place]} in dimension {place}",
            expected=f"0 to {extent - 1}" if extent else "no index: the dimension is empty",
            hint="guard it with te.if_then_else, or make the tensor smaller",
            excerpt=f"{self.op.name}[{axes}] = {self.op.body}",
        )


def both(mask: Any, condition: Any) -> Any:
    """Return a mask combined with a condition by ``and``; the mask None is true everywhere."""
    return condition if mask is None else mask & condition


def choose(chosen: Any, mask: Any, then: Any, otherwise: Any) -> Any:
    """Evaluate each side of a choice only where it is chosen, and combine the results."""
    where = both(mask, chosen)
    if not np.any(where):
        return otherwise(mask)
    if np.all(chosen):
        return then(mask)
    return np.where(chosen, then(where), otherwise(both(mask, ~chosen)))


def used_dimensions(exprs: Iterable[Expr], block: Block) -> frozenset[int]:
    """Return the dimensions of a block along which expressions vary."""
    used = {node for expr in exprs for node in walk(expr) if isinstance(node, Var)}
    return frozenset(n for n, axis in enumerate(block.axes) if axis.var in used)
