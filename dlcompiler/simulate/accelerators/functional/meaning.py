"""What a tensor instruction computes: a product of two operands, summed over some axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dlcompiler.simulate.accelerators.errors import InstructionError
from dlcompiler.simulate.accelerators.functional.formula import Formula, formula_of
from dlcompiler.target.accelerators import Accelerator, Instruction

Indices = npt.NDArray[np.int64]
_LARGEST_BATCH = 1 << 14
"""Updates that are computed at a time, so that the gathered operands stay in caches."""


@dataclass(frozen=True)
class Contraction:
    """``dst[…] += src[…] * wgt[…]``, with letters for the axes of each operand."""

    inputs: tuple[str, ...]
    """Letters of the axes of each input's element."""
    output: str
    accumulates: bool
    """Whether an update adds to its result, or replaces it."""
    exact: str
    """A dtype in which products and their sums are exact: ``float32``, ``float64`` or ``int64``."""
    result: str
    """Dtype of the results."""
    identity: int = 0

    def products(
        self, memories: list[npt.NDArray[Any]], elements: list[Indices]
    ) -> npt.NDArray[Any]:
        """Return what each update adds; (updates, *shape)."""
        count = len(elements[0])
        pieces = []
        for start in range(0, count, _LARGEST_BATCH):
            part = [each[start : start + _LARGEST_BATCH] for each in elements]
            pieces.append(self._batch(memories, part))
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def _batch(self, memories: list[npt.NDArray[Any]], elements: list[Indices]) -> Any:
        if len(memories) == 2:
            grouped = self._grouped(memories, elements)
            if grouped is not None:
                return grouped
        gathered = [
            memory[each].astype(self.exact) for memory, each in zip(memories, elements, strict=True)
        ]
        letters = ",".join(f"z{each}" for each in self.inputs)
        return self._wrapped(np.einsum(f"{letters}->z{self.output}", *gathered))

    def _grouped(self, memories: list[npt.NDArray[Any]], elements: list[Indices]) -> Any:
        """Multiply by each element of the second operand once, if each is used equally often."""
        order = np.argsort(elements[1], kind="stable")
        ordered = elements[1][order]
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        each, rest = divmod(len(order), len(starts))
        if rest or each < 2 or (starts != np.arange(len(starts)) * each).any():
            return None
        left = memories[0][elements[0][order]].astype(self.exact)
        right = memories[1][ordered[starts]].astype(self.exact)
        left = left.reshape(len(starts), each, *left.shape[1:])
        first, second = self.inputs
        letters = f"yz{first},y{second}->yz{self.output}"
        products = np.einsum(letters, left, right, optimize=True)
        result = np.empty((len(order), *products.shape[2:]), dtype=products.dtype)
        result[order] = products.reshape(len(order), *products.shape[2:])
        return self._wrapped(result)

    def one(self, inputs: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """Return what one update adds, in integers of 64 bits or as it is."""
        exact = "int64" if self.result.startswith(("int", "uint")) else self.exact
        wide = [each.astype(exact) for each in inputs]
        return self._wrapped(np.einsum(f"{','.join(self.inputs)}->{self.output}", *wide))

    def _wrapped(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return exact values as numbers of the result's dtype, of which integers wrap."""
        if self.result.startswith(("int", "uint")):
            return values.astype(np.int64).astype(self.result)
        return values.astype(self.result)


Meaning: TypeAlias = "Contraction | Formula"


def meaning_of(accelerator: Accelerator, instruction: Instruction, step: int) -> Meaning:
    """Return what a tensor instruction computes.

    Raises
    ------
    InstructionError
        It is no sum of products.
    """
    operands = [accelerator.memory(name) for name in instruction.operands.values()]
    if instruction.intrinsic is not None:
        formula = formula_of(instruction.intrinsic, operands[0].shape)
        if formula is None:
            raise InstructionError(
                f"simulate instruction {step}", f"{instruction.name} is a reduction but no sum",
                kind="unsupported", got=repr(instruction.intrinsic),
                expected="such as C[i, j] += A[i, k] * B[k, j]",
            )  # fmt: skip
        return formula
    output, inputs, accumulates = "bo", ("bi", "oi"), True
    numbers = 1
    sizes = {
        letter: extent
        for letters, memory in zip((output, *inputs), operands, strict=True)
        for letter, extent in zip(letters, memory.shape, strict=True)
    }
    for letter, extent in sizes.items():
        numbers *= extent if letter not in output else 1
    exact = _exact_dtype(numbers, [memory.dtype for memory in operands[1:]], operands[0].dtype)
    return Contraction(tuple(inputs), output, accumulates, exact, operands[0].dtype)


def _exact_dtype(terms: int, inputs: list[str], result: str) -> str:
    """Return a dtype in which a sum of products of some integers is exact."""
    if not result.startswith(("int", "uint")):
        return result
    bits = sum(np.dtype(each).itemsize * 8 for each in inputs) + terms.bit_length()
    if bits <= 24:
        return "float32"
    return "float64" if bits <= 53 else "int64"
