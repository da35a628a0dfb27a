"""GEMM and ALU instructions: all updates of an instruction at a time, or one after another."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler.ir.numeric import cast_function
from dlcompiler.simulate.accelerators.functional.findings import Findings
from dlcompiler.simulate.accelerators.functional.meaning import Meaning
from dlcompiler.simulate.accelerators.functional.micro_ops import Grid
from dlcompiler.simulate.accelerators.functional.state import State
from dlcompiler.simulate.accelerators.work import Work

Values = npt.NDArray[Any]
LEAST_SHIFT, MOST_SHIFT = -15, 31
"""Amounts by which all models of VTA shift in the same way; negative ones are to the left."""


def tensor(work: Work, grid: Grid, state: State, meaning: Meaning) -> None:
    """Run the updates of an instruction that computes an intrinsic, or reset its results."""
    operands = work.instruction.operands
    names = list(operands)
    results = state.stores[operands[names[0]]]
    target = grid.unique[names[0]]
    if work.fields.get("reset"):
        results.values[target] = meaning.identity
        results.written[target] = True
        return
    inputs = [state.stores[operands[name]].values for name in names[1:]]
    products = meaning.products(inputs, [grid.elements[name] for name in names[1:]])
    products = products.reshape(-1, *results.memory.shape)
    if meaning.accumulates:
        if grid.is_permuted:
            products = products[grid.order]
        if grid.has_duplicates:
            products = meaning.combiner.reduceat(products, grid.starts, axis=0)
        products = products.astype(results.values.dtype, copy=False)
        results.values[target] = meaning.combiner(results.values[target], products)
    else:
        last = np.r_[grid.starts[1:], len(grid.order)] - 1
        results.values[target] = products[grid.order[last]]
    results.written[target] = True
    state.counters[f"{work.instruction.name}_counter"] += len(grid.order)
    _write_beside(work, state, names[0], target)


def tensor_by_steps(work: Work, grid: Grid, state: State, meaning: Meaning) -> None:
    """Do what `tensor` does, one update after another."""
    operands = work.instruction.operands
    names = list(operands)
    results = state.stores[operands[names[0]]]
    for update in range(len(grid.order)):
        at = int(grid.elements[names[0]][update])
        target = np.array([at])
        results.written[at] = True
        if work.fields.get("reset"):
            results.values[at] = meaning.identity
            continue
        inputs = [
            state.stores[operands[name]].values[int(grid.elements[name][update])]
            for name in names[1:]
        ]
        product = meaning.one(inputs).astype(results.values.dtype).reshape(results.memory.shape)
        if meaning.accumulates:
            product = meaning.combiner(results.values[at], product)
        results.values[at] = product
        state.counters[f"{work.instruction.name}_counter"] += 1
        _write_beside(work, state, names[0], target)


def elementwise(
    work: Work, grid: Grid, state: State, step: int, findings: Findings, *, by_steps: bool = False
) -> None:
    """Run the updates of an elementwise instruction."""
    fields, operands = work.fields, work.instruction.operands
    names = list(operands)
    operation = work.instruction.operations[fields["operation"]]
    if operation not in OPERATIONS:
        raise findings.error(
            "unsupported", "an operation that is not known here", step, got=operation,
            expected=", ".join(OPERATIONS),
        )  # fmt: skip
    results = state.stores[operands[names[0]]].values
    target = grid.elements[names[0]]
    _check_shift(work, operation, step, findings)
    immediate = fields["imm"] if fields["use_imm"] else None
    source = target if immediate is not None else grid.elements[names[1]]
    sources = results if immediate is not None else state.stores[operands[names[1]]].values

    def update(which: npt.NDArray[np.int64] | slice) -> None:
        at = target[which]
        right: Any = immediate
        if immediate is None:
            right = sources[source[which]]
            if operation == "shr":
                _check_amounts(right, step, findings)
        results[at] = apply(operation, results[at], right)

    for which in (
        [slice(n, n + 1) for n in range(len(target))]
        if by_steps
        else _waves(target, source, grid, same=sources is results)
    ):
        update(which)
    state.stores[operands[names[0]]].written[target] = True
    state.counters[f"{work.instruction.name}_counter"] += len(target)
    _write_beside(work, state, names[0], grid.unique[names[0]])


def _waves(
    target: npt.NDArray[np.int64], source: npt.NDArray[np.int64], grid: Grid, *, same: bool
) -> list[Any]:
    """Return the updates in groups that can be computed at a time, one group after another.

    Without a wave that fits all updates of a group, each update is a group.
    """
    count = len(target)
    is_own = source is target or bool((source == target).all())
    reads_results = same and not is_own and bool(np.isin(source, target).any())
    if not grid.has_duplicates and not reads_results:
        return [slice(None)]
    if reads_results:
        if not grid.has_duplicates and not _reads_earlier(target, source):
            return [slice(None)]
        return [slice(n, n + 1) for n in range(count)]
    # Group n has the n-th update of each result.
    lengths = np.diff(np.r_[grid.starts, count])
    ranks = np.empty(count, dtype=np.int64)
    ranks[grid.order] = np.arange(count) - np.repeat(grid.starts, lengths)
    by_rank = np.argsort(ranks, kind="stable")
    bounds = np.searchsorted(ranks[by_rank], np.arange(lengths.max() + 1))
    return [by_rank[start:end] for start, end in itertools.pairwise(bounds)]


def _reads_earlier(target: npt.NDArray[np.int64], source: npt.NDArray[np.int64]) -> bool:
    """Tell whether an update reads a result of an earlier one; results are unique."""
    size = int(max(target.max(), source.max())) + 1
    written_at = np.full(size, len(target), dtype=np.int64)
    written_at[target] = np.arange(len(target))
    return bool((written_at[source] < np.arange(len(source))).any())


def apply(operation: str, left: Values, right: Any) -> Values:
    """Return the values of an operation on two's-complement numbers, which wrap.

    Examples
    --------
    >>> apply("shr", np.array([-5, 64], dtype=np.int32), 1)
    array([-3, 32], dtype=int32)
    """
    is_left = operation == "shr" and np.ndim(right) == 0 and right < 0
    amount = np.asarray(-right if is_left else right).astype(left.dtype)
    result: Values = np.left_shift(left, amount) if is_left else OPERATIONS[operation](left, amount)
    return result


OPERATIONS: MappingProxyType[str, Callable[[Values, Values], Values]] = MappingProxyType(
    {
        "min": np.minimum, "max": np.maximum, "add": np.add, "sub": np.subtract,
        "mul": np.multiply, "shr": np.right_shift,
    }
)  # fmt: skip
"""Operations of elementwise instructions, by name; integers wrap."""


def _check_shift(work: Work, operation: str, step: int, findings: Findings) -> None:
    """Refuse amounts of which models of the machine make different things."""
    if operation != "shr":
        return
    amount = work.fields["imm"]
    if work.fields["use_imm"] and not LEAST_SHIFT <= amount <= MOST_SHIFT:
        raise findings.error(
            "unsupported", "hardware and models shift by this amount in different ways", step,
            got=str(amount), expected=f"{LEAST_SHIFT} to {MOST_SHIFT}",
        )  # fmt: skip
    if not work.fields["use_imm"] and amount < 0:
        raise findings.error(
            "unsupported", "a shift by a register with a negative immediate", step, got=str(amount),
            because="hardware takes the direction of the shift from the sign of the immediate",
        )  # fmt: skip


def _check_amounts(amounts: Values, step: int, findings: Findings) -> None:
    if ((amounts < 0) | (amounts > MOST_SHIFT)).any():
        bad = amounts[(amounts < 0) | (amounts > MOST_SHIFT)][0]
        raise findings.error(
            "unsupported", "a shift by a register with an amount that hardware cuts off", step,
            got=str(bad), expected=f"0 to {MOST_SHIFT}",
        )  # fmt: skip


def _write_beside(work: Work, state: State, operand: str, target: npt.NDArray[np.int64]) -> None:
    """Write results into the other memories that get them, with the low bits of each."""
    for name, other in work.instruction.also_writes.items():
        if name != operand:
            continue
        store, results = state.stores[other], state.stores[work.instruction.operands[operand]]
        convert = cast_function(results.memory.dtype, store.memory.dtype, vector=True)
        store.values[target] = convert(results.values[target])
        store.written[target] = True
