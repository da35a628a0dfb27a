"""The stages of a recurrence: where they are computed and stored, and what is legal on them.

The stage of a scan has the loop over time. The *cell*, the stages of one step, runs inside this
loop. The first rows are computed before it. Inits and updates write into the buffers of the scan,
which hold the rows of all steps. The states read from the same buffers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dlcompiler.arith import Affine, Analyzer, Span
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import Const, Expr, TensorLoad, binary, substitute
from dlcompiler.schedule.groups import between
from dlcompiler.schedule.state import StageState, State, is_scan
from dlcompiler.schedule.verdict import Illegal
from dlcompiler.te import ScanOp, Tensor

OF_SCAN = ("split", "fuse", "unroll", "pragma", "cache_read", "compute_root", "env_threads")
"""Primitives that are legal on the stage of a scan."""
CONCURRENT = {"vectorize": "vectorized", "parallel": "parallel", "bind": "bound to threads"}
OF_STORAGE = ("set_scope", "storage_align", "transform_layout")
OF_ONE_STEP = ("align_extent", "double_buffer", "rolling_buffer")


def hosts(state: State) -> Mapping[str, StageState]:
    """Map the name of each stage that runs inside a scan's loop to the stage of the scan."""
    cached = state.cache.get("hosts")
    if cached is None:
        cached = state.cache["hosts"] = _hosts(state)
    result: Mapping[str, StageState] = cached
    return result


def _hosts(state: State) -> dict[str, StageState]:
    scans = [stage for stage in state.stages if is_scan(stage)]
    if not scans:
        return {}
    made = {tensor: scan for scan in scans for tensor in scan.op.states}  # type: ignore[union-attr]
    last = {tensor: scan for scan in scans for tensor in scan.op.updates}  # type: ignore[union-attr]
    found: dict[str, StageState] = {}
    for stage in state.stages:  # producers come first
        near = [made[tensor] for tensor in stage.op.input_tensors if tensor in made]
        near += [last[tensor] for tensor in stage.tensors if tensor in last]
        if near and not is_scan(stage):
            found[stage.name] = near[0]
            made.update(dict.fromkeys(stage.tensors, near[0]))
    return found


def storage_aliases(state: State) -> dict[Tensor, Tensor]:
    """Map each init, update and state of a scan to the result whose buffer it aliases."""
    return {
        tensor: result
        for stage in state.stages
        if isinstance(stage.op, ScanOp)
        for group in (stage.op.inits, stage.op.updates, stage.op.states)
        for tensor, result in zip(group, stage.tensors, strict=True)
    }


def scan_of(state: State, key: object) -> StageState | None:
    """Return the stage of the scan that a tensor is a state of."""
    return next((s for s in state.stages if isinstance(key, Tensor) and key in s.states), None)


def is_init(state: State, stage: StageState) -> bool:
    """Tell whether a stage is an init of a scan: it computes the first rows."""
    scans = [item.op for item in state.stages if isinstance(item.op, ScanOp)]
    return any(tensor in scan.inits for scan in scans for tensor in stage.tensors)


def is_update(state: State, stage: StageState) -> bool:
    """Tell whether a stage is an update of a scan: it computes one row at each step."""
    host = hosts(state).get(stage.name)
    return host is not None and not set(stage.tensors).isdisjoint(_scan(host).updates)


def is_fixed(state: State, stage: StageState) -> bool:
    """Tell whether a stage cannot be attached: a scan, its inits and its updates."""
    return is_scan(stage) or is_init(state, stage) or is_update(state, stage)


def time_of(scan: StageState, values: Mapping[Any, Expr]) -> Expr:
    """Return the index of the row that a step computes: the value of the time axis."""
    return values[_scan(scan).scan_axis]


def region_of_time(scan: StageState) -> tuple[Span, ...]:
    """Return the range of rows that the steps compute: all but the first rows."""
    op = _scan(scan)
    return (Span(Affine.of_constant(op.first), op.scan_axis.extent),)


def _scan(stage: StageState) -> ScanOp:
    assert isinstance(stage.op, ScanOp)
    return stage.op


# -- legality of primitives ------------------------------------------------------------------------


def refusal(
    state: State, stage: StageState, primitive: str, args: Mapping[str, Any]
) -> Illegal | None:
    """Return the reason why a primitive is illegal on a part of a recurrence, or None."""
    if not any(map(is_scan, state.stages)):
        return None
    if primitive == "create_group":
        return _of_group(state, between(state, args["outputs"], args["inputs"]))
    if isinstance(stage.op, ScanOp):
        is_launched = any(axis is args.get("axis") for axis in stage.kinds)
        if primitive in OF_SCAN or (primitive in CONCURRENT and is_launched):
            return None  # the loop of a launch is already bound, like any thread loop
        return _on_scan(stage, stage.op, primitive)
    if primitive == "cache_read":
        return _of_copy(state, stage, args["readers"])
    return _of_part(state, stage, primitive, args)


def _of_part(
    state: State, stage: StageState, primitive: str, args: Mapping[str, Any]
) -> Illegal | None:
    """Refuse primitives that are illegal on inits, on updates, or on other stages of a cell."""
    host = hosts(state).get(stage.name)
    is_stored = is_init(state, stage) or is_update(state, stage)
    if is_stored and primitive in ("compute_at", "compute_inline"):
        return _of_place(stage, "before all steps" if host is None else "at each step")
    if is_stored and primitive in OF_STORAGE and args.get("scope") != "global":
        return Illegal(
            "limit",
            f"{stage.name} is stored in the result of a scan, over all time",
            hint=f'compute it in a buffer of its own: s.cache_write({stage.name}, "local")',
            conflicts=(stage.name,),
        )
    if host is not None and primitive in OF_ONE_STEP:
        return Illegal(
            "limit",
            f"{stage.name} is computed at each step of {host.name}, for this step only",
            because="later steps read what this one computes",
            conflicts=(stage.name,),
        )
    if primitive in CONCURRENT and is_update(state, stage) and args["axis"] is stage.op.axis[0]:
        assert host is not None
        return _on_time(stage, (stage.key(args["axis"]), _time_key(host)), primitive)
    return None


def _of_copy(state: State, stage: StageState, names: Iterable[str]) -> Illegal | None:
    """Refuse `cache_read` if one of the readers is the stage of a scan."""
    for reader in (state.stage(name) for name in names if state.has_stage(name)):
        if is_scan(reader):
            return Illegal(
                "structural",
                f"{reader.name} is a scan: it stores {stage.name} itself, and reads no copy",
                hint=f"let the stages of its cell read a copy, or readers of {reader.name}",
            )
    return None


def _of_group(state: State, members: Iterable[StageState]) -> Illegal | None:
    for member in members:
        if member.name in hosts(state) or is_fixed(state, member):
            return Illegal(
                "limit",
                f"{member.name} is part of a recurrence, which no group can move",
                hint="leave it out: the inputs say where a group ends",
                conflicts=(member.name,),
            )
    return None


def _on_scan(stage: StageState, op: ScanOp, primitive: str) -> Illegal:
    if primitive in CONCURRENT:
        return _on_time(stage, (_time_key(stage),), primitive)
    updates = ", ".join(f"s[{update.name}]" for update in op.updates)
    if primitive == "reorder":
        return Illegal(
            "semantic",
            f"the steps of {stage.name} keep their order",
            because="each step reads what earlier ones computed",
            hint=f"reorder the loops of one step: {updates}",
            conflicts=tuple(stage.key(leaf) for leaf in stage.leaves),
        )
    return Illegal(
        "limit",
        f"{primitive} is not available on a scan",
        got=f"{stage.name}, whose steps are computed once, in a loop nest of their own",
        hint=f"schedule what a step computes: {updates}",
        conflicts=(stage.name,),
    )


def _time_key(scan: StageState) -> str:
    """Return the key of the loop that runs the steps of a scan."""
    return scan.key(scan.leaves[-1])


def _on_time(stage: StageState, keys: tuple[str, ...], primitive: str) -> Illegal:
    return Illegal(
        "semantic",
        f"the time of a recurrence cannot be {CONCURRENT[primitive]}",
        got=f"stage {stage.name}",
        because="each step reads what earlier ones computed",
        hint="choose another axis of an update: the elements of one step are independent",
        conflicts=keys,
    )


def _of_place(stage: StageState, when: str) -> Illegal:
    return Illegal(
        "structural",
        f"{stage.name} is part of a scan: it is computed {when}",
        hint="attach or inline the stages that it reads",
        conflicts=(stage.name,),
    )


def refuse_state(state: State, key: object) -> None:
    """Refuse ``s[X]`` if X is a state of a scan, which has no stage."""
    if isinstance(key, Tensor) and (scan := scan_of(state, key)):
        raise ScheduleError(
            f"schedule[{key.name!r}]",
            f"{key.name} is a state of {scan.name}: it has no stage of its own",
            hint=f"s[{scan.name}] has the loop over time, and the buffer",
        )


# -- legality of states --------------------------------------------------------------------


def early_reads(
    stage: StageState,
    loads: tuple[TensorLoad, ...],
    scan: StageState,
    values: Mapping[Any, Expr],
    now: Expr,
) -> Iterator[Illegal]:
    """Yield reads, by a stage of a cell, of rows that are not available at its step.

    Parameters
    ----------
    stage
        A stage of the cell.
    loads
        What it reads.
    scan
        The stage of the scan.
    values
        The axes of the stage in terms of the loops.
    now
        The row that a step computes, in these terms.
    """
    op = _scan(scan)
    variables = {axis.var: value for axis, value in values.items()}
    for load in loads:
        allowed = range(0)
        if load.tensor in op.states:
            allowed = range(-op.first, 0)
        elif load.tensor in op.updates:
            allowed = range(1)
        else:
            continue
        row = substitute(load.indices[0], variables)
        offset = Analyzer({}).simplify(binary("sub", row, now))
        if not (isinstance(offset, Const) and int(offset.value) in allowed):
            yield Illegal(
                "semantic",
                f"{stage.name} would read {load} at steps that are not computed then",
                because=f"{stage.name} is computed for several steps of {scan.name} at once",
                hint=f"compute it in the innermost loop over time: s[{stage.name}].compute_root()",
                conflicts=(stage.name, scan.key(scan.leaves[-1])),
            )
