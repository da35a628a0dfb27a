"""The elements that an instruction computes on: its micro-ops in its two loops."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dlcompiler.simulate.accelerators.work import Work
from dlcompiler.target.accelerators import Accelerator

Indices = npt.NDArray[np.int64]


def micro_op_bits(accelerator: Accelerator, memory: str) -> tuple[int, ...]:
    """Return the bits of each operand in the micro-ops of a memory; () if it holds none.

    An operand has the bits that the deepest memory needs which any instruction reads there.

    Examples
    --------
    >>> from dlcompiler.target.accelerators.vta import preset
    >>> micro_op_bits(preset("vta-pynq"), "uop")
    (11, 11, 10)
    """
    bits: list[int] = []
    for each in accelerator.instructions:
        if each.micro_ops != memory or not memory:
            continue
        for place, operand in enumerate(each.operands.values()):
            width = max((accelerator.memory(operand).depth - 1).bit_length(), 1)
            if place == len(bits):
                bits.append(width)
            bits[place] = max(bits[place], width)
    return tuple(bits)


def unpacked(words: Indices, bits: tuple[int, ...]) -> Indices:
    """Return micro-ops from words; (count,) -> (count, operands).

    The first operand has the lowest bits.
    """
    columns, offset = [], 0
    for width in bits:
        columns.append(words >> offset & ((1 << width) - 1))
        offset += width
    return np.stack(columns, axis=1)


class Grid(NamedTuple):
    """The elements of an instruction's updates, in their order."""

    elements: dict[str, Indices]
    """Operand -> the element of each update; (updates,)."""
    unique: dict[str, Indices]
    """Operand -> its elements, each once, in ascending order."""
    order: Indices
    """The updates in the order of their results' elements; (updates,)."""
    starts: Indices
    """Where in `order` the updates of each result begin; (results,)."""
    is_permuted: bool
    """Whether `order` is another one than that of the updates."""
    runs_of_equal: bool
    """Whether two updates one after another have the same result."""

    @property
    def has_duplicates(self) -> bool:
        """Tell whether two updates have the same result."""
        return len(self.starts) < len(self.order)


class Grids:
    """The grids of instructions; equal ones are computed once."""

    def __init__(self) -> None:
        self._grid = functools.lru_cache(maxsize=512)(_grid)

    def of(self, work: Work, micro_ops: Indices) -> Grid:
        """Return the grid of an instruction.

        Parameters
        ----------
        work : Work
            The instruction.
        micro_ops : array, (count, operands)
            Its micro-ops.
        """
        fields = work.fields
        factors = tuple(
            (name, fields[f"{name}_factor_out"], fields[f"{name}_factor_in"])
            for name in work.instruction.operands
        )
        shape = micro_ops.shape
        return self._grid(
            micro_ops.tobytes(), shape, factors, fields["iter_out"], fields["iter_in"]
        )


def own_micro_op(work: Work) -> Indices:
    """Return the micro-op in the fields of an instruction; (1, operands)."""
    fields: Mapping[str, int] = work.fields
    return np.array([[fields[name] for name in work.instruction.operands]], dtype=np.int64)


def _grid(
    data: bytes,
    shape: tuple[int, int],
    factors: tuple[tuple[str, int, int], ...],
    iter_out: int,
    iter_in: int,
) -> Grid:
    micro_ops = np.frombuffer(data, dtype=np.int64).reshape(shape)
    out = np.arange(iter_out, dtype=np.int64)[:, None, None]
    inner = np.arange(iter_in, dtype=np.int64)[None, :, None]
    elements = {
        name: (micro_ops[:, place] + out * factor_out + inner * factor_in).reshape(-1)
        for place, (name, factor_out, factor_in) in enumerate(factors)
    }
    unique = {name: np.unique(each) for name, each in elements.items()}
    results = next(iter(elements.values()))
    order = np.argsort(results, kind="stable")
    ordered = results[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    is_permuted = bool((order[1:] < order[:-1]).any())
    runs_of_equal = bool((results[1:] == results[:-1]).any())
    return Grid(elements, unique, order, starts, is_permuted, runs_of_equal)
