"""`Primitive`, and the checks of arguments that primitives share (`require_…`)."""

from __future__ import annotations

import functools
import inspect
import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from dlcompiler.errors import shown_number
from dlcompiler.ir import Axis, Extent, LoopKind, Var
from dlcompiler.ir.expr import AxisKind
from dlcompiler.schedule.state import AttachedAt, Attachment, Fuse, Group, Split, StageState, State
from dlcompiler.schedule.verdict import Illegal, Refused, Verdict
from dlcompiler.target import is_known_scope, known_scopes, similar_scopes
from dlcompiler.target.presets import CPU_SCOPES

ParameterKind: TypeAlias = Literal[
    "axis", "axes", "int", "text", "stage", "stages", "parent_axis", "index_map", "intrin"
]
SCOPES = tuple(scope.name for scope in CPU_SCOPES)
"""Memories of a CPU."""


@dataclass(slots=True)
class StepContext:
    """The step being applied: the id of the state that it leads to, and the axes created so far."""

    state_id: str
    lineage: object
    step: str
    made: list[Axis] = field(default_factory=list)

    def axis(self, name: str, extent: Extent, kind: AxisKind) -> Axis:
        """Create an axis; its id derives from the state and the number of axes before it."""
        axis = Axis(
            name, extent, kind, id=f"{self.state_id}/{len(self.made)}", lineage=self.lineage
        )
        self.made.append(axis)
        return axis


def is_knob(value: Any) -> bool:
    """Tell whether a size is a knob: a symbol whose value is an argument of the kernel."""
    return isinstance(value, Var) and value.is_symbol and value.dtype == "index"


def size_of(value: Any) -> Extent:
    """Return a size as a number; a knob unchanged."""
    return value if is_knob(value) else int(value)


@dataclass(frozen=True, slots=True)
class Primitive:
    """A schedule primitive.

    `parameters` names its arguments and their kinds, in the order of the call. `check` and
    `apply` take the state, the stage, and the arguments by name; `apply` also a
    `StepContext`.
    """

    name: str
    parameters: Mapping[str, ParameterKind]
    check: Callable[..., Verdict]
    apply: Callable[..., tuple[State, Any]]

    @property
    def signature(self) -> str:
        """The arguments in the order of the call, as refusals show them: ``axis, factor=None``."""
        accepted = inspect.signature(self.check).parameters
        optional = {name for name in self.parameters if name not in _required(self.check)}
        return ", ".join(
            f"{name}={accepted[name].default!r}" if name in optional else name
            for name in self.parameters
        )

    def missing(self, args: Mapping[str, Any]) -> list[str]:
        """Return the names of required arguments that are missing in `args`."""
        return [
            name for name in _required(self.check) if name in self.parameters and name not in args
        ]


@functools.cache
def _required(check: Callable[..., Verdict]) -> tuple[str, ...]:
    """Return the parameters of a check that have no default."""
    accepted = inspect.signature(check).parameters
    return tuple(name for name, p in accepted.items() if p.default is inspect.Parameter.empty)


def require_leaf(state: State, stage: StageState, axis: object) -> None:
    """Refuse an axis that is not a loop of `stage`."""
    if not isinstance(axis, Axis):
        raise Refused(
            Illegal(
                "structural",
                "not an axis",
                got=f"{axis!r} ({type(axis).__name__})",
                hint=f"pass one of s[{stage.name}].leaf_iter_vars",
            )
        )
    if stage.has_leaf(axis):
        return
    require_expression(stage)
    if axis in stage.paths:
        raise Refused(
            Illegal(
                "structural",
                _gone(stage, axis),
                got=f"axis {stage.paths[axis]} of stage {stage.name}",
                hint=f"the loops are now: {leaf_names(stage)}",
            )
        )
    owner = next((s for s in state.stages if axis in s.paths), None)
    raise Refused(
        Illegal(
            "structural",
            f"the axis does not belong to stage {stage.name}",
            got=f"axis {axis.name} of {f'stage {owner.name}' if owner else 'another expression'}",
            hint=f"the loops of {stage.name} are: {leaf_names(stage)}",
        )
    )


def _gone(stage: StageState, axis: Axis) -> str:
    for relation in stage.relations:
        match relation:
            case Split(parent, outer, inner, _, _) if parent is axis:
                return f"it was split into {stage.paths[outer]} and {stage.paths[inner]}"
            case Fuse(outer, inner, fused) if axis is outer or axis is inner:
                return f"it was fused into {stage.paths[fused]}"
    return "it is no longer a loop"


def leaf_names(stage: StageState) -> str:
    """Return the names of a stage's loops, outermost first."""
    return ", ".join(stage.paths[leaf] for leaf in stage.leaves) or "none"


def require_group(stage: StageState) -> Group:
    """Return the group of a stage; refuse a stage without a group."""
    if stage.group is None:
        hint = "make one: s.create_group([outputs], [inputs])"
        raise Refused(Illegal("structural", f"{stage.name} is in no group", hint=hint))
    return stage.group


def require_distinct(stage: StageState, axes: tuple[Axis, ...]) -> None:
    """Refuse an axis given twice."""
    if len(set(axes)) != len(axes):
        got = ", ".join(stage.paths[axis] for axis in axes)
        raise Refused(Illegal("structural", "each axis may be given once", got=got))


def require_expression(stage: StageState) -> None:
    """Refuse a stage that extern code computes."""
    if stage.is_extern:
        raise Refused(
            Illegal(
                "structural",
                f"{stage.name} is computed by code from outside",
                because="it computes all of its outputs from all of its inputs, at once, and its "
                "loops, if it has any, are its own",
                hint="schedule the stages before and behind it",
                conflicts=(stage.name,),
            )
        )


def require_loops(stage: StageState) -> None:
    """Refuse a stage that has no loops to work on."""
    require_expression(stage)
    if stage.is_placeholder:
        raise Refused(Illegal("structural", f"{stage.name} is an input: it has no loops"))
    if stage.is_inlined:
        raise Refused(
            Illegal(
                "structural",
                f"{stage.name} is inlined: it has no loops of its own",
                hint=f"call s[{stage.name}].compute_root() first",
            )
        )


def require_plain(stage: StageState, axis: Axis) -> None:
    """Refuse to change a loop whose annotation would be lost."""
    require_free(stage, axis)
    kind = stage.kind(axis)
    if kind == "serial" and axis not in stage.pragmas:
        return
    if kind == "serial":
        names = ", ".join(stage.pragmas[axis])
        raise Refused(
            Illegal(
                "structural",
                "the loop has a pragma already, and would lose that",
                got=f"{stage.label(axis)}, {names}",
                hint="undo that step, and give the new loop the pragma afterwards",
                conflicts=(stage.key(axis),),
            )
        )
    raise Refused(
        Illegal(
            "structural",
            f"the loop is {kind} already, and would lose that",
            got=f"{stage.label(axis)}, {kind}",
            hint=f"undo that step, and make the new loop {kind} afterwards",
            conflicts=(stage.key(axis),),
        )
    )


def require_free(stage: StageState, axis: Axis) -> None:
    """Refuse to change a loop that an intrinsic replaces."""
    own = stage.tensorized
    if own is None or not stage.has_leaf(own.axis):
        return
    if stage.position(axis) >= stage.position(own.axis):
        raise Refused(
            Illegal(
                "structural",
                f"the loop is part of the intrinsic {own.intrin.name}",
                got=f"{stage.label(axis)}, tensorized by: {own.step}",
                hint="undo that step, and tensorize last",
                conflicts=(stage.key(own.axis),),
            )
        )


def require_kind(stage: StageState, axis: Axis, kind: LoopKind) -> None:
    """Refuse a loop that has an annotation other than `kind`."""
    require_free(stage, axis)
    if stage.kind(axis) not in ("serial", kind):
        raise Refused(
            Illegal(
                "structural",
                f"the loop is {stage.kind(axis)} already",
                got=stage.label(axis),
                hint="undo that step, or choose another loop",
                conflicts=(stage.key(axis),),
            )
        )


def require_scope(scope: object) -> None:
    """Refuse a scope that no target has."""
    if not isinstance(scope, str) or not is_known_scope(scope):
        similar = similar_scopes(scope) if isinstance(scope, str) else ()
        names = [*sorted(known_scopes()), *similar]
        raise Refused(
            Illegal(
                "limit",
                "no such memory scope",
                got=repr(scope),
                hint=f"known scopes: {', '.join(names)}",
            )
        )


def require_own_storage(stage: StageState) -> None:
    """Refuse inputs and outputs, whose memory the caller gives, and inlined stages."""
    if stage.is_placeholder:
        raise Refused(
            Illegal("structural", f"{stage.name} is an input: its memory is the caller's")
        )
    if stage.is_output:
        raise Refused(
            Illegal(
                "limit",
                f"{stage.name} is an output: its memory is the caller's",
                hint="cache it first, with s.cache_write(…), and choose for the cache",
                conflicts=(stage.name,),
            )
        )
    if stage.is_inlined:
        raise Refused(Illegal("structural", f"{stage.name} is inlined: it is not stored"))


def require_compact(state: State, stage: StageState) -> None:
    """Refuse to change the memory layout of a stage that extern code reads."""
    for reader in state.readers_of(stage):
        if reader.is_extern:
            raise Refused(
                Illegal(
                    "structural",
                    f"{reader.name}, code from outside, reads {stage.name} as it is",
                    because="it was written for rows that are side by side",
                    hint=f"cache {stage.name} for its other readers, and change the cache",
                    conflicts=(stage.name, reader.name),
                )
            )


def require_dimension(stage: StageState, axis: object) -> None:
    """Refuse an axis that is not a dimension of the tensors of a stage."""
    if any(axis is own for own in stage.op.axis):
        return
    names = ", ".join(stage.paths[own] for own in stage.op.axis) or "none"
    raise Refused(
        Illegal(
            "structural",
            f"the axis is no dimension of {stage.name}",
            got=stage.paths.get(axis, axis.name) if isinstance(axis, Axis) else repr(axis),
            hint=f"the dimensions are: {names}",
        )
    )


def require_output(stage: StageState, output: object, count: int) -> None:
    """Refuse an output number that is not in [0, `count`)."""
    if output is None or (isinstance(output, int) and 0 <= output < count):
        return
    raise Refused(
        Illegal(
            "structural",
            f"{stage.name} has no such output",
            got=repr(output),
            hint=f"its outputs are 0 to {count - 1}",
        )
    )


def require_positive(value: Any, name: str) -> None:
    """Refuse a value that is not an integer of at least 1."""
    _require_integer(value, name)
    if value < 1:
        raise Refused(Illegal("structural", f"{name} must be at least 1", got=shown_number(value)))


def require_natural(value: Any, name: str) -> None:
    """Refuse a value that is not an integer of at least 0."""
    _require_integer(value, name)
    if value < 0:
        raise Refused(
            Illegal("structural", f"{name} must not be negative", got=shown_number(value))
        )


def _require_integer(value: Any, name: str) -> None:
    is_integral = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    is_whole = isinstance(value, float | np.floating) and float(value).is_integer()
    if not is_integral and not is_whole:
        raise Refused(
            Illegal(
                "structural",
                f"{name} must be an integer",
                got=f"{value!r} ({type(value).__name__})",
            )
        )


def replace_leaves(
    stage: StageState, old: tuple[Axis, ...], new: tuple[Axis, ...]
) -> tuple[Axis, ...]:
    """Return the loops of a stage, with the adjacent loops `old` replaced by `new`."""
    at = stage.position(old[0])
    return (*stage.leaves[:at], *new, *stage.leaves[at + len(old) :])


def moved_attachments(
    stages: Iterable[StageState], old: str, new: str, moved: Mapping[Axis, Axis]
) -> list[StageState]:
    """Return the stages with attachments at loops of `old` replaced by loops of `new`."""
    groups: dict[Group, Group] = {}

    def followed(at: Attachment) -> Attachment:
        if isinstance(at, AttachedAt) and at.stage == old and at.axis in moved:
            return AttachedAt(new, moved[at.axis], at.step)
        return at

    def group_of(stage: StageState) -> Group | None:
        group = stage.group
        if group is None or followed(group.place) is group.place:
            return group
        return groups.setdefault(group, Group(group.name, followed(group.place)))

    result = []
    for stage in stages:
        place, group = followed(stage.attachment), group_of(stage)
        if place is not stage.attachment or group is not stage.group:
            stage = replace(stage, attachment=place, group=group)
        result.append(stage)
    return result


def set_kind(stage: StageState, axis: Axis, kind: LoopKind) -> StageState:
    """Return the stage with `axis` annotated as `kind`."""
    return replace(stage, kinds={**stage.kinds, axis: kind})
