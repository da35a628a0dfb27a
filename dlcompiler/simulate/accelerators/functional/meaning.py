"""What a tensor instruction computes: one update for each micro-op, all of them at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dlcompiler import dtypes
from dlcompiler.ir import Binary, Cast, Expr, Reduce, TensorLoad
from dlcompiler.simulate.accelerators.errors import InstructionError
from dlcompiler.simulate.accelerators.functional.formula import COMBINERS, Formula, formula_of
from dlcompiler.target.accelerators import Accelerator, Instruction

Indices = npt.NDArray[np.int64]
Values = npt.NDArray[Any]
_LARGEST_BATCH = 1 << 14
"""Updates that are computed at a time, so that the gathered operands stay in caches."""


@dataclass(frozen=True)
class Contraction:
    """``dst[…] += src[…] * wgt[…]``, with letters for the axes of each operand."""

    inputs: tuple[str, ...]
    """Letters of the axes of each input's element."""
    output: str
    shapes: tuple[tuple[int, ...], ...]
    """Shapes of the inputs."""
    exact: str
    """A dtype in which products and their sums are exact: ``float32``, ``float64`` or ``int64``."""
    result: str
    """Dtype of the results."""
    combiner: np.ufunc = np.add
    accumulates = True
    identity = 0

    def products(self, memories: Sequence[Values], elements: Sequence[Indices]) -> Values:
        """Return what each update adds; (updates, *shape)."""
        return _in_batches(self._batch, memories, elements)

    def _batch(self, memories: Sequence[Values], elements: Sequence[Indices]) -> Values:
        if len(memories) == 2:
            grouped = self._grouped(memories, elements)
            if grouped is not None:
                return grouped
        gathered = [
            memory[each].astype(self.exact).reshape(len(each), *shape)
            for memory, each, shape in zip(memories, elements, self.shapes, strict=True)
        ]
        letters = ",".join(f"z{each}" for each in self.inputs)
        return self._wrapped(np.einsum(f"{letters}->z{self.output}", *gathered))

    def _grouped(self, memories: Sequence[Values], elements: Sequence[Indices]) -> Values | None:
        """Multiply by each element of the second operand once, if each is used equally often."""
        order = np.argsort(elements[1], kind="stable")
        ordered = elements[1][order]
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        each, rest = divmod(len(order), len(starts))
        if rest or each < 2 or (starts != np.arange(len(starts)) * each).any():
            return None
        left = memories[0][elements[0][order]].astype(self.exact)
        right = memories[1][ordered[starts]].astype(self.exact)
        left = left.reshape(len(starts), each, *self.shapes[0])
        right = right.reshape(len(starts), *self.shapes[1])
        products = self._multiplied(left, right)
        result = np.empty((len(order), *products.shape[2:]), dtype=products.dtype)
        result[order] = products.reshape(len(order), *products.shape[2:])
        return self._wrapped(result)

    def _multiplied(self, left: Values, right: Values) -> Values:
        """Return the products of groups of left elements with a right element each."""
        first, second = self.inputs
        if first[0] == self.output[0] and (first[1:], self.output[1:]) == (second[1:], second[:1]):
            # dst[b, o] += src[b, i] * wgt[o, i]: rows of all left elements of a group at a time.
            rows = left.reshape(len(left), -1, left.shape[-1])
            products: Values = np.matmul(rows, right.swapaxes(1, 2))
            return products.reshape(*left.shape[:-1], -1)
        products = np.einsum(f"yz{first},y{second}->yz{self.output}", left, right)
        return products

    def one(self, inputs: Sequence[Values]) -> Values:
        """Return what one update adds, computed with integers of 64 bits if they are integers."""
        exact = "int64" if _is_integer(self.result) else self.exact
        wide = [
            each.astype(exact).reshape(shape)
            for each, shape in zip(inputs, self.shapes, strict=True)
        ]
        return self._wrapped(np.einsum(f"{','.join(self.inputs)}->{self.output}", *wide))

    def _wrapped(self, values: Values) -> Values:
        """Return exact values as numbers of the result's dtype, of which integers wrap."""
        if _is_integer(self.result):
            return values.astype(np.int64).astype(self.result)
        return values.astype(self.result)


Meaning: TypeAlias = "Contraction | Formula"


def _in_batches(compute: Any, memories: Sequence[Values], elements: Sequence[Indices]) -> Values:
    count = len(elements[0])
    pieces = [
        compute(memories, [each[start : start + _LARGEST_BATCH] for each in elements])
        for start in range(0, count, _LARGEST_BATCH)
    ]
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def meaning_of(accelerator: Accelerator, instruction: Instruction) -> Meaning:
    """Return what a tensor instruction computes.

    Without an intrinsic, it is VTA's GEMM: ``dst[b, o] += src[b, i] * wgt[o, i]``.

    Raises
    ------
    InstructionError
        Its intrinsic is a reduction that NumPy does not have.
    """
    memories = [accelerator.memory(name) for name in instruction.operands.values()]
    kinds = [memory.dtype for memory in memories]
    if instruction.intrinsic is None:
        shapes = tuple(memory.shape for memory in memories)
        return _contraction("bo", ("bi", "oi"), shapes, kinds)
    op = instruction.intrinsic.op
    tensors = tuple(instruction.intrinsic.inputs)
    body = op.body
    is_sum = isinstance(body, Reduce) and body.reducer.op == "add"
    if is_sum and body.condition is None and not body.init:
        letters = {id(a.var): chr(ord("a") + n) for n, a in enumerate((*op.axis, *body.axes))}
        loads = _factors(body.value, tensors, letters, _bits(body.dtype))
        if loads is not None:
            output = "".join(letters[id(axis.var)] for axis in op.axis)
            shapes = (
                tuple(instruction.intrinsic.output.static_shape),
                *(tuple(tensor.static_shape) for tensor in tensors),
            )
            if _is_integer(kinds[0]) or set(kinds) == {kinds[0]}:
                return _contraction(output, loads, shapes, kinds)
    formula = formula_of(instruction.intrinsic, memories[0].shape)
    if formula is None:
        raise InstructionError(
            "simulate the program", f"{instruction.name} is a reduction that is not known here",
            kind="unsupported", got=repr(instruction.intrinsic),
            expected=f"a reduction by {', '.join(COMBINERS)}",
        )  # fmt: skip
    return formula


def _factors(
    value: Expr, tensors: tuple[Any, ...], letters: Mapping[int, str], least_bits: int
) -> tuple[str, ...] | None:
    """Return the axes of the inputs if a value is their product, each read at plain axes."""
    while isinstance(value, Cast):
        value = value.value
    if _bits(value.dtype) < least_bits and isinstance(value, Binary):
        return None  # the product wraps before it is added
    is_product = isinstance(value, Binary) and value.op == "mul"
    factors = (value.a, value.b) if isinstance(value, Binary) and is_product else (value,)
    loads = [_widened_load(factor) for factor in factors]
    found: dict[int, str] = {}
    for load in loads:
        names = [letters.get(id(index)) for index in load.indices] if load is not None else [None]
        if load is None or None in names:
            return None
        found[id(load.tensor)] = "".join(name for name in names if name)
    if len(loads) != len(tensors) or set(found) != {id(tensor) for tensor in tensors}:
        return None
    return tuple(found[id(tensor)] for tensor in tensors)


def _widened_load(factor: Expr) -> TensorLoad | None:
    """Return the load in a factor, if casts around it lose no bits."""
    while isinstance(factor, Cast) and _bits(factor.dtype) >= _bits(factor.value.dtype):
        factor = factor.value
    return factor if isinstance(factor, TensorLoad) else None


def _bits(dtype: str) -> int:
    return dtypes.bytes_of(dtype) * 8


def _contraction(
    output: str, inputs: tuple[str, ...], shapes: tuple[tuple[int, ...], ...], kinds: list[str]
) -> Contraction:
    sizes = {
        letter: extent
        for letters, shape in zip(inputs, shapes[1:], strict=True)
        for letter, extent in zip(letters, shape, strict=True)
    }
    terms = 1
    for letter, extent in sizes.items():
        terms *= extent if letter not in output else 1
    exact = _exact_dtype(terms, kinds[1:], kinds[0])
    return Contraction(inputs, output, shapes[1:], exact, kinds[0])


def _exact_dtype(terms: int, inputs: list[str], result: str) -> str:
    """Return a dtype in which a sum of products of some integers is exact."""
    if not _is_integer(result):
        return result
    bits = sum(_bits(each) for each in inputs) + terms.bit_length()
    if bits <= 24:
        return "float32"
    return "float64" if bits <= 53 else "int64"


def _is_integer(dtype: str) -> bool:
    return dtype.startswith(("int", "uint"))
