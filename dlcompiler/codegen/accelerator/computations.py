"""Nests that compute: calls of tensor intrinsics, and elementwise operations.

An instruction runs two loops around a list of micro-ops, each of which names the elements of its
operands. The inner loops of a nest become these two loops, and the others are written out as
micro-ops. Loops along which the result stays at one element come first: between two updates of an
element there are then as many others as possible.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dlcompiler.arith import Affine, Analyzer
from dlcompiler.codegen.accelerator.copies import memory_of, runs
from dlcompiler.codegen.accelerator.elements import Lanes, lanes_of
from dlcompiler.codegen.accelerator.forms import Bound, Number, Slots, flat_index
from dlcompiler.codegen.accelerator.nests import HostLoop, Nest, Split, limits_of
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import (
    Buffer,
    Const,
    IntrinsicCall,
    Load,
    Region,
    Store,
    Var,
    walk,
    walk_statements,
)
from dlcompiler.target.accelerators import Accelerator, Instruction

SKIP = "skip_"
"""Before the name of an instruction that a tensor intrinsic leaves out, to time the others."""


@dataclass(frozen=True, slots=True)
class Loops:
    """The two loops of an instruction, and its micro-ops relative to the first element."""

    iterations: tuple[int, int]
    """Of the outer and the inner loop."""
    factors: tuple[tuple[int, int], ...]
    """For each operand, the step of its element along the outer and the inner loop."""
    micro_ops: npt.NDArray[np.int64]
    """(micro-ops, operands) [elements]."""


def elements_of(
    iterations: tuple[int, int], steps: tuple[int, int], micro_ops: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the elements of an operand that an instruction accesses; in order, (accesses,).

    Parameters
    ----------
    iterations, steps
        Of the outer and the inner loop, and the operand's steps along them [elements].
    micro_ops
        The operand's element in each micro-op; (micro-ops,) [elements].
    """
    outer, inner = (np.arange(count) * step for count, step in zip(iterations, steps, strict=True))
    return (outer[:, None, None] + inner[:, None] + micro_ops).reshape(-1)


@dataclass(frozen=True, slots=True)
class Inner:
    """An inner loop of a computation."""

    extent: int
    steps: tuple[int, ...]
    """Step of each operand [elements]."""
    var: Var | None = None
    """The loop that runs along it, if a condition bounds it."""


@dataclass(frozen=True, slots=True, eq=False)
class Computation:
    """A nest that computes: its instruction, its operands, and its loops for given numbers."""

    instruction: Instruction
    buffers: tuple[Buffer, ...]
    """The buffer of each operand, the result first."""
    host: tuple[HostLoop, ...]
    inner: tuple[Inner, ...]
    """Outermost first."""
    bases: tuple[Number, ...]
    """The first number of each operand in its buffer."""
    numbers: tuple[int, ...]
    """Numbers in an element of each operand; [1]."""
    guards: tuple[Bound, ...]
    leaf: Store | IntrinsicCall
    fields: tuple[tuple[str, int], ...] = ()
    """Fields with the same value in all its instructions: ``reset``, ``operation``, ``imm``."""
    is_idle: bool = False
    """Whether its instructions only pass tokens."""
    most: int = 1 << 14
    """Iterations of a loop are below this."""
    _loops: dict[tuple[tuple[int, int], ...], Loops] = field(default_factory=dict)

    def runs(self, numbers: list[int]) -> Iterator[tuple[Loops, tuple[int, ...]]]:
        """Yield the loops and the first element of each operand, an instruction each.

        Raises
        ------
        ScheduleError
            An operand does not begin with a whole element.
        """
        bounded = {each.var: each.extent for each in self.inner if each.var is not None}
        for _ in runs(self.host, numbers):
            limits = limits_of(self.guards, numbers, bounded)
            if limits is None:
                continue
            ranges = tuple(
                (0, each.extent) if each.var is None else limits.get(each.var, (0, each.extent))
                for each in self.inner
            )
            if any(low >= high for low, high in ranges):
                continue
            bases = []
            for place, number in enumerate(self.bases):
                first = number(numbers)
                if first % self.numbers[place]:
                    raise ScheduleError(
                        f"compute {self.buffers[0].name}",
                        f"{self.buffers[place].name} does not begin with a whole element",
                        got=f"number {first}", expected=f"a multiple of {self.numbers[place]}",
                    )  # fmt: skip
                skipped = sum(
                    low * each.steps[place]
                    for (low, _), each in zip(ranges, self.inner, strict=True)
                )
                bases.append(first // self.numbers[place] + skipped)
            yield self._loops_of(ranges), tuple(bases)

    def _loops_of(self, ranges: tuple[tuple[int, int], ...]) -> Loops:
        """Return the instruction's loops for the ranges of the inner loops."""
        if ranges not in self._loops:
            loops = [
                (high - low, each.steps)
                for (low, high), each in zip(ranges, self.inner, strict=True)
            ]
            self._loops[ranges] = loops_of(
                loops, len(self.buffers), self.most, self.instruction.spacing
            )
        return self._loops[ranges]


def loops_of(
    loops: Sequence[tuple[int, tuple[int, ...]]], operands: int, most: int, spacing: int = 1
) -> Loops:
    """Return loops as two loops of an instruction around micro-ops.

    Parameters
    ----------
    loops
        Extent of each loop and step of each operand along it, outermost first.
    operands
        Number of operands; [1].
    most
        Iterations of a loop of an instruction are below this; [1].
    spacing
        Updates of one element should be at least this far apart; [1].
    """
    joined: list[tuple[int, tuple[int, ...]]] = []
    for extent, steps in sorted(loops, key=lambda loop: loop[1][0] != 0):
        if extent == 1:
            continue
        before = joined[-1] if joined else None
        if before and all(a == b * extent for a, b in zip(before[1], steps, strict=True)):
            joined[-1] = before[0] * extent, steps
        else:
            joined.append((extent, steps))
    fitting = [n for n, loop in enumerate(joined) if loop[0] < most and min(loop[1]) >= 0]

    def innermost(pair: Sequence[int]) -> tuple[int, tuple[int, ...]]:
        left = [n for n in range(len(joined)) if n not in pair]
        return joined[(left or list(pair))[-1]]

    # The longest loops leave the fewest micro-ops. Updates of one element are apart if the
    # innermost loop, which is one of those left, goes on to other elements.
    pairs = sorted(
        itertools.combinations(fitting, min(len(fitting), 2)),
        key=lambda pair: -math.prod(joined[n][0] for n in pair),
    )
    apart = (
        pair
        for pair in pairs
        if spacing == 1 or (innermost(pair)[1][0] and innermost(pair)[0] >= spacing)
    )
    chosen = next(apart, pairs[0]) if joined else ()
    rest = [loop for n, loop in enumerate(joined) if n not in chosen]
    none = (1, (0,) * operands)
    two = [joined[n] for n in chosen]
    outer, inner = [none] * (2 - len(two)) + two
    micro_ops = np.zeros((1, operands), np.int64)
    for extent, steps in rest:
        along = np.arange(extent)[:, None] * np.array(steps)[None, :]
        micro_ops = (micro_ops[:, None, :] + along[None, :, :]).reshape(-1, operands)
    factors = tuple(zip(outer[1], inner[1], strict=True))
    return Loops((outer[0], inner[0]), factors, micro_ops)


def tensor_computations(
    nest: Nest, accelerator: Accelerator, analyzer: Analyzer, slots: Slots
) -> Iterator[Computation]:
    """Yield calls of an intrinsic as instructions.

    An instruction of a reduction adds to its result. A call that computes a whole reduction is
    therefore a reset and an update.

    Raises
    ------
    ScheduleError
        The accelerator has no instruction for the intrinsic, or an operand is in another memory
        than the instruction accesses.
    """
    call = nest.leaf
    assert isinstance(call, IntrinsicCall)
    is_idle = isinstance(call.part, str) and call.part.startswith(SKIP)
    where = f"compute {call.regions[0].buffer.name} by {call.intrinsic.name}"
    instruction = instruction_for(call, accelerator)
    if instruction is None:
        raise _without_instruction(call, accelerator, where)
    sizes = check_operands(call, instruction, accelerator)
    for is_reset in _resets(call):
        regions = call.regions[:1] if is_reset else call.regions
        sums = [flat_index(r.buffer, r.indices, analyzer) for r in regions]
        split = Split(nest, analyzer, slots, sums)
        if is_reset and instruction.field("reset") is None:
            raise ScheduleError(where, f"{instruction.name} has no reset")
        fields = (("reset", int(is_reset)),) if instruction.field("reset") else ()
        computation = _computation(split, Lanes({}, {}), sizes[: len(regions)])
        buffers = tuple(region.buffer for region in regions)
        yield Computation(instruction, buffers, *computation, call, fields, is_idle)


def _resets(call: IntrinsicCall) -> tuple[bool, ...]:
    """Return, for each instruction that a call becomes, whether it resets its result."""
    if call.mode == "body" and _is_reduction(call):
        return True, False
    return (call.mode == "reset",)


def _is_reduction(call: IntrinsicCall) -> bool:
    """Tell whether the declaration of an intrinsic reads its own result."""
    stores = (stmt for stmt in walk_statements(call.body) if isinstance(stmt, Store))
    return any(
        isinstance(node, Load) and node.buffer is store.buffer
        for store in stores
        for node in walk(store.value)
    )


def instruction_for(call: IntrinsicCall, accelerator: Accelerator) -> Instruction | None:
    """Return the instruction that computes a call of an intrinsic; None without one."""
    return next((i for i in accelerator.instructions if _computes(i, call)), None)


def _computes(instruction: Instruction, call: IntrinsicCall) -> bool:
    """Tell whether an instruction computes an intrinsic.

    Its own one, of the same declaration; without an own one, a shipped one that names it.
    """
    if instruction.kind != "tensor":
        return False
    if isinstance(call.part, str) and call.part.startswith(SKIP):
        return call.part.removeprefix(SKIP) == instruction.name
    mine = instruction.intrinsic
    if mine is not None:
        return bool(mine.id == call.intrinsic.id)
    return call.intrinsic.is_shipped and call.part == instruction.name


def _without_instruction(
    call: IntrinsicCall, accelerator: Accelerator, where: str
) -> ScheduleError:
    """Return the error of an intrinsic that no instruction computes."""
    known = [i for i in accelerator.instructions if i.kind == "tensor"]
    same = next((i for i in known if i.name in (call.part, call.intrinsic.name)), None)
    because = None
    if same is not None:
        because = f"its instruction {same.name} computes another intrinsic of this name"
    return ScheduleError(
        where, f"{accelerator.name} has no instruction for this intrinsic",
        got=call.intrinsic.id or call.intrinsic.name, because=because,
        expected=", ".join(i.intrinsic.id if i.intrinsic else i.name for i in known) or "none",
        hint="tensor_op(engine, intrinsic, …) describes an instruction that computes an intrinsic",
    )  # fmt: skip


def check_operands(
    call: IntrinsicCall, instruction: Instruction, accelerator: Accelerator
) -> list[int]:
    """Return how many numbers an element of each operand has.

    Raises
    ------
    ScheduleError
        An operand is in another memory than the instruction accesses, or is no element of it.
    """
    where = f"compute {call.regions[0].buffer.name} by {call.intrinsic.name}"
    sizes = []
    for name, region in zip(list(instruction.operands), call.regions, strict=False):
        memory = accelerator.memory(instruction.operands[name])
        _check_operand(where, name, region, accelerator.scope_of(memory.name), memory.numbers)
        sizes.append(memory.numbers)
    return sizes


def _check_operand(where: str, name: str, region: Region, scope: str, numbers: int) -> None:
    """Refuse an operand that lies in another memory, or is no element of it."""
    if region.buffer.scope != scope:
        raise ScheduleError(
            where, f"its operand {name}, {region.buffer.name}, is in another memory",
            got=region.buffer.scope, expected=scope,
            hint=f"s[{region.buffer.name}].set_scope({scope!r})",
        )  # fmt: skip
    extents = [int(e.value) if isinstance(e, Const) else 0 for e in region.extents]
    dense, reach = math.prod(extents), 1
    for extent, stride in zip(
        reversed(extents), reversed(region.buffer.static_strides), strict=True
    ):
        if extent != 1 and stride != reach:
            dense = 0
        reach *= extent
    if dense != numbers:
        raise ScheduleError(
            where, f"its operand {name}, {region.buffer.name}, is not an element of its memory",
            got=f"{extents} of a buffer with strides {list(region.buffer.static_strides)}",
            expected=f"{numbers} neighbouring numbers",
            hint="lay the tensor out in blocks of an element's shape",
        )  # fmt: skip


def elementwise_computation(
    buffers: Sequence[Buffer],
    sums: Sequence[Affine],
    nest: Nest,
    instruction: Instruction,
    accelerator: Accelerator,
    analyzer: Analyzer,
    slots: Slots,
    fields: tuple[tuple[str, int], ...],
) -> Computation:
    """Return an operation on each number of its operands as instructions.

    Parameters
    ----------
    buffers, sums
        The buffer of the result, which is the first operand too, and of the second one; the index
        of each as a sum.
    nest
        The loops.
    instruction, accelerator
        What computes it.
    analyzer, slots
        Know the loops.
    fields
        The operation, and the immediate if there is one.
    """
    where = f"compute {buffers[0].name} by {instruction.name}"
    memory = memory_of(buffers[0], accelerator)
    assert memory is not None
    split = Split(nest, analyzer, slots, sums)
    lanes = lanes_of(split, memory.numbers, where)
    sizes = [memory.numbers] * len(buffers)
    computation = _computation(split, lanes, sizes)
    is_idle = bool(nest.under("skip_alu"))
    return Computation(instruction, tuple(buffers), *computation, nest.leaf, fields, is_idle)


def _computation(
    split: Split, lanes: Lanes, sizes: Sequence[int]
) -> tuple[
    tuple[HostLoop, ...], tuple[Inner, ...], tuple[Number, ...], tuple[int, ...], tuple[Bound, ...]
]:
    """Return what a `Computation` holds of its loops."""
    extents, conditions = split.nest.extents, split.nest.conditions
    bounded = {b.var for b in split.bounds(conditions)}
    forms = split.forms()
    # A step that is no whole element makes the loop one of the host, where it is refused.
    for var in [v for v in split.inner if v not in lanes.inside]:
        if any(lanes.factor(form, var) % size for form, size in zip(forms, sizes, strict=True)):
            split.leave(var)
            forms = split.forms()
    inner = []
    for var in split.inner:
        extent = lanes.rest.get(var, extents[var])
        steps = (lanes.factor(f, var) // size for f, size in zip(forms, sizes, strict=True))
        inner.append(Inner(extent, tuple(steps), var if var in bounded else None))
    bases = tuple(split.number(form.base) for form in forms)
    return split.host, tuple(inner), bases, tuple(sizes), split.bounds(conditions)
