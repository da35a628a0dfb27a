"""What the memories and instructions of an accelerator allow, for the moves on a schedule.

A stage in a memory of an accelerator becomes instructions when the program is built: loads, stores,
a tensor instruction or elementwise ones. The rules here are those that a stage must meet whatever
steps follow, so a move that they refuse leads nowhere. The build checks everything.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from dlcompiler.ir import Axis, Binary, Const, Expr, IfThenElse, Reduce, Select, free_vars, walk
from dlcompiler.ir.expr import TensorLoad
from dlcompiler.schedule.inference.bounds import infer_bounds
from dlcompiler.schedule.inference.inlining import bodies, consumers, loads_of
from dlcompiler.schedule.inference.thread_loops import threads_around
from dlcompiler.schedule.legality.obligations import has_bounds
from dlcompiler.schedule.legality.tensorized import box_extents
from dlcompiler.schedule.state import AttachedAt, StageState, State
from dlcompiler.schedule.verdict import Illegal, Pending, Verdict
from dlcompiler.target.accelerators import Accelerator, Instruction, Memory
from dlcompiler.target.accelerators.model import intrinsic_operands
from dlcompiler.target.accelerators.uses import (
    WITH_NUMBER,
    computing_into,
    loads_into,
    memory_of_scope,
    reading,
    result_of,
    why_no_stage,
)
from dlcompiler.te import ComputeOp, Tensor, TensorIntrin
from dlcompiler.te.intrinsics.library import instruction_intrinsic

if TYPE_CHECKING:
    from dlcompiler.schedule.schedule import Attempt


Use: TypeAlias = tuple[Instruction, TensorIntrin]
"""A tensor instruction, and what it computes."""


def stage_scopes(accelerator: Accelerator) -> tuple[str, ...]:
    """Return the memories of an accelerator that stages can be in, as scopes."""
    return tuple(
        accelerator.scope_of(memory.name)
        for memory in accelerator.memories
        if not why_no_stage(accelerator, memory)
    )


def verdict_of(accelerator: Accelerator, attempt: Attempt, before: State) -> Verdict | None:
    """Return what an accelerator says about a legal step; None if it has no objection.

    Parameters
    ----------
    accelerator
        The accelerator.
    attempt
        The step, and the state that it leads to.
    before
        The state that it begins at.
    """
    assert attempt.state is not None
    state, chosen = attempt.state, _put_into_memory(attempt)
    if chosen is not None and (memory := memory_of_scope(accelerator, chosen.scope)):
        refused = next(_misplacements(accelerator, state, chosen, memory), None)
        if refused is not None:
            return refused
    return _too_deep(accelerator, state, before, chosen)


def _put_into_memory(attempt: Attempt) -> StageState | None:
    """Return the stage whose memory a step chooses; None if it chooses none."""
    step, state = attempt.step, attempt.state
    assert step is not None
    assert state is not None
    if "scope" not in step.args:
        return None
    if step.primitive == "set_scope":
        return state.stage(step.stage)
    made = attempt.result[0] if isinstance(attempt.result, tuple) else attempt.result
    return state.find(made) if isinstance(made, Tensor) else None


# -- which memory ------------------------------------------------------------------------------


def _misplacements(
    accelerator: Accelerator, state: State, stage: StageState, memory: Memory
) -> Iterator[Illegal]:
    """Yield the reasons why a stage cannot be in a memory, whatever steps follow."""
    others = ", ".join(stage_scopes(accelerator))
    if reason := why_no_stage(accelerator, memory):
        yield Illegal("limit", reason, hint=f"stages can be in {others}")
        return
    if stage.tensor.dtype != memory.dtype:
        yield Illegal(
            "limit", f"{memory.name} holds {memory.dtype}",
            got=f"{stage.tensor.dtype} {stage.name}",
            hint=f"compute it as {memory.dtype}, or choose another memory",
        )  # fmt: skip
    yield from _reader_problems(accelerator, state, stage, memory)
    yield from _writer_problems(accelerator, state, stage, memory)
    shape = stage.op.output(0).shape if isinstance(stage.op, ComputeOp) else ()
    known = tuple(n for n in shape if isinstance(n, int))
    if shape and len(known) == len(shape) and not _is_whole(known, memory.numbers):
        yield Illegal(
            "limit", f"{stage.name} does not consist of whole elements of {memory.name}",
            got=f"{stage.tensor.dtype}{list(shape)}",
            because=f"an instruction moves and computes {memory.dtype}{list(memory.shape)}",
            hint="lay the tensors out in blocks of an element's shape",
        )  # fmt: skip


def _is_whole(shape: tuple[int, ...], numbers: int) -> bool:
    """Tell whether the inner dimensions of a tensor are elements of so many numbers.

    Examples
    --------
    >>> _is_whole((8, 2, 16), 32), _is_whole((8, 256), 32), _is_whole((8, 24), 16)
    (True, True, False)
    """
    for extent in reversed(shape):
        if numbers == 1:
            return True
        count = math.gcd(extent, numbers)
        if count < min(extent, numbers):
            return False
        numbers //= count
    return numbers == 1


def _writer_problems(
    accelerator: Accelerator, state: State, stage: StageState, memory: Memory
) -> Iterator[Illegal]:
    """Yield the reasons why no instruction writes a stage into a memory."""
    (body, *more) = bodies(state).get(stage.name) or (None,)
    if body is None or more:
        return
    copied = _copied(body)
    computing = computing_into(accelerator, memory)
    if copied is not None and loads_into(accelerator, memory) and _is_in_dram(state, copied):
        return
    if not computing:
        yield Illegal(
            "limit", f"only loads from DRAM write {memory.name}", got=f"{stage.name} = {body}",
            hint=f"compute it in {_where_computed(accelerator)}",
        )  # fmt: skip
    if any(each.kind == "tensor" for each in computing) and isinstance(body, Reduce):
        return
    elementwise = next((i for i in computing if i.kind == "elementwise"), None)
    if elementwise is None or not all(_is_sum(accelerator, i) for i in computing):
        return
    for name in _operations(body):
        if name not in elementwise.operations:
            yield Illegal(
                "limit", f"{elementwise.name} has no operation {name}",
                got=f"{stage.name} = {body}", expected=", ".join(elementwise.operations),
                hint=f"leave it in DRAM, or compute it by {', '.join(elementwise.operations)}",
            )  # fmt: skip


def _copied(body: Expr) -> TensorLoad | None:
    """Return the element that an expression copies, perhaps with zeros around it."""
    match body:
        case TensorLoad():
            return body
        case IfThenElse(_, TensorLoad() as copied, Const(0)) | Select(
            _, TensorLoad() as copied, Const(0)
        ):
            return copied
    return None


def _is_in_dram(state: State, load: TensorLoad) -> bool:
    assert isinstance(load.tensor, Tensor)
    return state.producer_of(load.tensor).scope == "global"


def _where_computed(accelerator: Accelerator) -> str:
    names = (m for m in accelerator.memories if computing_into(accelerator, m))
    return " or ".join(accelerator.scope_of(memory.name) for memory in names)


def _is_sum(accelerator: Accelerator, instruction: Instruction) -> bool:
    """Tell whether an instruction is elementwise, or computes a reduction."""
    intrinsic = instruction_intrinsic(accelerator, instruction)
    return instruction.kind == "elementwise" or (intrinsic is None or _is_reduction(intrinsic))


def _operations(body: Expr) -> Iterator[str]:
    """Yield the operations of an expression by their names; those of indices are left out."""
    for node in walk(body):
        match node:
            case TensorLoad() | Const() | Reduce():
                continue
            case Binary(op, _, Const()) if node.dtype != "index":
                yield WITH_NUMBER.get(op, op)
            case Binary(op) if node.dtype != "index":
                yield op
            case Expr() if node.dtype not in ("index", "bool"):
                yield type(node).__name__.lower()


def _reader_problems(
    accelerator: Accelerator, state: State, stage: StageState, memory: Memory
) -> Iterator[Illegal]:
    """Yield the readers of a stage that cannot read it in a memory of tensor instructions only."""
    users = reading(accelerator, memory)
    intrinsics = [instruction_intrinsic(accelerator, user) for user in users]
    if not users or None in intrinsics:
        return
    uses = [(user, of) for user, of in zip(users, intrinsics, strict=True) if of is not None]
    for reader in consumers(state, stage):
        (body, *_) = bodies(state).get(reader.name) or (None,)
        if body is None:
            continue
        only = f"{memory.name} is read by {' and '.join(user.name for user in users)} only"
        fitting = [use for use in uses if _is_reduction(use[1]) == isinstance(body, Reduce)]
        if not fitting:
            yield Illegal(
                "limit", only, got=f"{reader.name} = {body}", conflicts=(reader.name,),
                hint=_other_memory(accelerator, memory, reader),
            )  # fmt: skip
        elif wrong := _wrong_operand(state, stage, memory, reader, fitting):
            names = dict.fromkeys(
                name for user, _ in fitting for name in [*user.operands.values()][1:]
            )
            others = (accelerator.memory(name) for name in names if name != memory.name)
            right = (m for m in others if not _wrong_operand(state, stage, m, reader, fitting))
            other = next(right, None)
            yield Illegal(
                "limit", f"{only}, {wrong[0]}", got=wrong[1], conflicts=(reader.name,),
                hint=None if other is None else f"choose {accelerator.scope_of(other.name)}",
            )  # fmt: skip


def _is_reduction(intrinsic: TensorIntrin) -> bool:
    return isinstance(intrinsic.op.body, Reduce)


def _other_memory(accelerator: Accelerator, memory: Memory, reader: StageState) -> str | None:
    """Return a hint: the memory of elementwise operations, if there is another one."""
    names = [
        accelerator.scope_of(result_of(each))
        for each in accelerator.instructions
        if each.kind == "elementwise" and result_of(each) != memory.name
    ]
    return f"{reader.name} can read it in {names[0]}" if names else None


def _wrong_operand(
    state: State, stage: StageState, memory: Memory, reader: StageState, uses: Sequence[Use]
) -> tuple[str, str] | None:
    """Return which operand instructions read in a memory, and what a reader reads of a stage.

    None if the reader may be such an instruction. Operands differ by the dimensions of a result
    that they go along: in a product of matrices the left one goes along the rows, the right one
    along the columns.
    """
    loads = [n for n in loads_of(bodies(state)[reader.name]) if n.tensor in stage.tensors]
    for user, intrinsic in uses:
        wanted = dict(zip(user.operands.values(), intrinsic_operands(intrinsic), strict=False))
        declared = [n for n in loads_of((intrinsic.op.body,)) if n.tensor is wanted[memory.name]]
        axes = reader.op.axis[-len(intrinsic.op.axis) :]
        for own, theirs in zip(axes, intrinsic.op.axis, strict=False):
            if theirs.static_extent == 1 or not declared:
                continue
            goes = _goes_along(declared[0], theirs)
            wrong = next((n for n in loads if _goes_along(n, own) is not goes), None)
            if wrong is not None:
                words = "goes along" if goes else "is the same for all"
                return f"as the operand that {words} {own.name}", str(wrong)
    return None


def _goes_along(load: TensorLoad, axis: Axis) -> bool:
    return any(axis.var in free_vars(index) for index in load.indices)


# -- how much of it ----------------------------------------------------------------------------


def _too_deep(
    accelerator: Accelerator, state: State, before: State, chosen: StageState | None
) -> Verdict | None:
    """Return an objection if a step makes a stage larger than its memory; None otherwise.

    A memory may be chosen before the stage is attached to a loop: then the stage has to be attached
    later.
    """
    known = _excesses(accelerator, before)
    for name, (need, memory) in _excesses(accelerator, state).items():
        if chosen is not None and chosen.name == name:
            return Pending(
                f"{name} has {need:,} elements, and {memory.name} has room for {memory.depth:,}: "
                "attach it to a loop (compute_at)"
            )
        if name not in known:
            return Illegal(
                "limit", f"not enough depth: {memory.depth:,} elements of {memory.name}",
                got=f"{need:,} elements of {name}", conflicts=(name,),
                hint="choose smaller tiles, or attach the stage to a loop further in",
            )  # fmt: skip
    return None


def _excesses(accelerator: Accelerator, state: State) -> dict[str, tuple[int, Memory]]:
    """Return the elements of each stage that alone is larger than its memory."""
    found: dict[str, tuple[int, Memory]] = {}
    for stage in state.stages:
        memory = memory_of_scope(accelerator, stage.scope)
        if memory is not None and (need := _elements(state, stage, memory)) > memory.depth:
            found[stage.name] = need, memory
    return found


def _elements(state: State, stage: StageState, memory: Memory) -> int:
    """Return how many elements a stage needs at least; 0 if its size is not known; [1]."""
    if not has_bounds(state) or stage.rolled_by or stage.is_inlined:
        return 0
    bounds = infer_bounds(state).stages
    if stage.name not in bounds:
        return 0
    region = bounds[stage.name].region
    sizes = [span.extent for span in region]
    moving = {var for span in region for var in free_vars(span.first.to_expr())}
    at, copies = stage.attachment, 1
    if stage.double_buffered_by and isinstance(at, AttachedAt) and at.stage in bounds:
        copies = 1 if bounds[at.stage].extents[at.axis] == 1 else 2
    for host, leaf in threads_around(state, stage).values():
        own = bounds[host.name]
        count, var = own.extents[leaf], own.loop_vars[leaf]
        # Each virtual thread has its own place, unless a condition lets only some of them run: then
        # they run one after another.
        is_guarded = any(var in free_vars(guard) for guard in own.guards)
        if var in moving and isinstance(count, int) and not is_guarded:
            copies *= count
    if not all(isinstance(size, int) for size in sizes):
        return 0
    return copies * math.ceil(math.prod(sizes) / memory.numbers)


# -- instructions ------------------------------------------------------------------------------


def instructions_for(
    accelerator: Accelerator, state: State, stage: StageState, args: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return the names of the instructions that a move is about; () if it is about none.

    Parameters
    ----------
    accelerator
        The accelerator.
    state
        The state that the move begins at.
    stage
        The stage of the move. With `readers`, a copy of it is put into a memory.
    args
        The arguments of the move: `intrin`, or `scope`.
    """
    if "intrin" in args:
        found = [i for i in accelerator.instructions if i.kind == "tensor"]
        return tuple(i.name for i in found if _name_of(accelerator, i) == args["intrin"])
    memory = memory_of_scope(accelerator, args.get("scope", ""))
    if memory is None:
        return ()
    (body, *_) = bodies(state).get(stage.name) or (None,)
    copied = None if body is None else _copied(body)
    is_loaded = copied is not None and _is_in_dram(state, copied)
    if "readers" in args:
        is_loaded = stage.scope == "global"
    kind = "tensor" if isinstance(body, Reduce) and "readers" not in args else "elementwise"
    into = loads_into if is_loaded else computing_into
    return tuple(i.name for i in into(accelerator, memory) if i.kind in ("load", kind))


def _name_of(accelerator: Accelerator, instruction: Instruction) -> str:
    intrinsic = instruction_intrinsic(accelerator, instruction)
    return "" if intrinsic is None else intrinsic.id or intrinsic.name


def intrinsics_of(
    accelerator: Accelerator, state: State, stage: StageState
) -> Iterator[tuple[Axis, str]]:
    """Yield (loop, intrinsic) where the loops inside have the extents of an instruction's result.

    The loops of the reduction may still be elsewhere: then the move is refused with the reason.
    """
    if stage.tensorized is not None or len(stage.tensors) > 1 or not has_bounds(state):
        return
    for each in accelerator.instructions:
        intrinsic = instruction_intrinsic(accelerator, each) if each.kind == "tensor" else None
        if intrinsic is None or intrinsic.output.dtype != stage.tensor.dtype:
            continue
        wanted = [n for axis in intrinsic.op.axis if (n := axis.static_extent) > 1]
        for leaf in stage.leaves:
            extents = box_extents(state, stage, leaf)
            if extents is not None and extents[0] == wanted:
                yield leaf, _name_of(accelerator, each)
