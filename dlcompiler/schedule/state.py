"""The state of a schedule: an immutable value. Each primitive maps a state to the next one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias

from dlcompiler.ir import (
    Axis,
    Buffer,
    Call,
    Extent,
    Load,
    LoopKind,
    StepRef,
    TensorLoad,
    Var,
    rewrite,
    structural_key,
)
from dlcompiler.ir.names import unique_name
from dlcompiler.ir.rewrite import Node
from dlcompiler.te import (
    ComputeOp,
    ExternOp,
    Operation,
    PlaceholderOp,
    ScanOp,
    Tensor,
    TensorIntrin,
    post_order,
)


@dataclass(frozen=True, slots=True)
class Split:
    """`parent` is iterated as `outer` times `inner`; either `factor` or `nparts` is given.

    This is a number, or a knob: a symbol whose value is an argument of the kernel.
    """

    parent: Axis
    outer: Axis
    inner: Axis
    factor: Extent | None
    nparts: Extent | None

    @property
    def knobs(self) -> tuple[Var, ...]:
        """The symbols that the split depends on."""
        return tuple(part for part in (self.factor, self.nparts) if isinstance(part, Var))


@dataclass(frozen=True, slots=True)
class Fuse:
    """`outer` and `inner` are iterated as the single axis `fused`."""

    outer: Axis
    inner: Axis
    fused: Axis


@dataclass(frozen=True, slots=True)
class Singleton:
    """`axis` runs once and is derived from no other axis."""

    axis: Axis


@dataclass(frozen=True, slots=True)
class Launched:
    """`axis` counts the blocks, or threads, that run all steps of a scan."""

    axis: Axis


Relation: TypeAlias = Split | Fuse | Singleton | Launched


@dataclass(frozen=True, slots=True)
class AtRoot:
    """The stage has a loop nest of its own."""


@dataclass(frozen=True, slots=True)
class Inlined:
    """The stage's expression is substituted into its consumers."""


@dataclass(frozen=True, slots=True)
class AttachedAt:
    """The stage is computed inside the loop `axis` of the stage named `stage`.

    `step` is the text of the step that attached it.
    """

    stage: str
    axis: Axis
    step: str


@dataclass(frozen=True, slots=True)
class Tensorized:
    """An intrinsic replaces the loop `axis` and the loops inside it.

    `step` is the text of the step that tensorized the stage.
    """

    axis: Axis
    intrin: TensorIntrin
    step: str


Attachment: TypeAlias = AtRoot | Inlined | AttachedAt
ROOT, INLINED = AtRoot(), Inlined()
PREFETCH = "prefetch."
"""Prefix of the pragma of a loop that prefetches; the name of the buffer follows."""


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Stages that are moved together."""

    name: str
    """Unique in the schedule."""
    place: Attachment
    """The attachment of all stages that are not attached inside the group."""


@dataclass(frozen=True, slots=True, eq=False)
class StageState:
    """How the tensors of one operation are computed, in one state."""

    name: str
    """Unique in the schedule."""
    tensors: tuple[Tensor, ...]
    """The handles that consumers read; they stay the same while `op` is rewritten."""
    op: Operation
    leaves: tuple[Axis, ...]
    """The loops, outermost first."""
    relations: tuple[Relation, ...] = ()
    kinds: Mapping[Axis, LoopKind] = field(default_factory=dict)
    """Loop kinds that are not serial."""
    paths: Mapping[Axis, str] = field(default_factory=dict)
    """The name of each axis that the stage ever had, unique in the stage."""
    attachment: Attachment = ROOT
    scope: str = "global"
    is_output: bool = False
    aliases: tuple[Tensor, ...] = ()
    """The handles of its tensors before their layout was transformed."""
    alignments: Mapping[Axis, tuple[int, int]] = field(default_factory=dict)
    """(factor, offset) of padded dimensions: stride = offset + a multiple of factor."""
    separators: tuple[int, ...] = ()
    """Dimensions, except the first, at which a new dimension of the memory begins."""
    rounded: Mapping[Axis, Extent] = field(default_factory=dict)
    """For some dimensions: the number that the computed extent is rounded up to a multiple of."""
    pragmas: Mapping[Axis, Mapping[str, int]] = field(default_factory=dict)
    """The pragmas of each loop."""
    storing: Mapping[str, int] = field(default_factory=dict)
    """For thread axes that share a reduction: the thread that stores the result; 0 by default."""
    tensorized: Tensorized | None = None
    """The intrinsic that replaces inner loops."""
    double_buffered_by: str = ""
    """The step that double-buffered the stage; '' if none did."""
    rolled_by: str = ""
    """The step that made the buffer a rolling one; '' if none did."""
    group: Group | None = None
    """The group that the stage belongs to."""
    cache: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    """What was computed of the stage, by name; it lives as long as the stage."""

    @property
    def tensor(self) -> Tensor:
        """The first of its tensors, which all have the same shape."""
        return self.tensors[0]

    @property
    def is_placeholder(self) -> bool:
        """Tell whether the stage is an input."""
        return isinstance(self.op, PlaceholderOp)

    @property
    def states(self) -> tuple[Tensor, ...]:
        """For a scan: the placeholders that stand for its tensors at its own steps."""
        return self.op.states if isinstance(self.op, ScanOp) else ()

    @property
    def readable(self) -> tuple[Tensor, ...]:
        """The tensors that other stages may read: its outputs, then the states of a scan."""
        return (*self.tensors, *self.states)

    @property
    def is_extern(self) -> bool:
        """Tell whether extern code computes the stage, so that its loops cannot be scheduled."""
        return isinstance(self.op, ExternOp)

    @property
    def is_inlined(self) -> bool:
        """Tell whether the stage has no loops because its expression is substituted."""
        return isinstance(self.attachment, Inlined)

    def kind(self, axis: Axis) -> LoopKind:
        """Return the kind of a loop; the default is serial."""
        return self.kinds.get(axis, "serial")

    def position(self, axis: Axis) -> int:
        """Return the position of a loop in the nest, 0 for the outermost."""
        # By identity: `==` of axes builds an expression.
        for number, leaf in enumerate(self.leaves):
            if leaf is axis:
                return number
        raise ValueError(f"{axis} is no loop of {self.name}")

    def has_leaf(self, axis: Axis) -> bool:
        """Tell whether `axis` is a loop of the stage in this state."""
        for leaf in self.leaves:  # noqa: SIM110  asked for often, and any() takes twice as long
            if leaf is axis:
                return True
        return False

    def label(self, axis: Axis) -> str:
        """Return ``stage.axis``."""
        return f"{self.name}.{self.paths.get(axis, axis.name)}"

    def key(self, axis: Axis) -> str:
        """Return the key of a loop in views and verdicts: ``stage/axis``."""
        return f"{self.name}/{self.paths.get(axis, axis.name)}"

    @property
    def body_key(self) -> str:
        """The key of the innermost statement of the stage in views and verdicts."""
        return f"{self.name}//body"


NOTES = frozenset({"pragmas"})
"""Fields of a stage that no check of a state reads."""
_CHECKED = tuple(item.name for item in fields(StageState) if item.init and item.name not in NOTES)


def differs_in_notes_only(stage: StageState, other: StageState) -> bool:
    """Tell whether two states of a stage hold the same objects in all fields but `NOTES`."""
    return all(getattr(stage, name) is getattr(other, name) for name in _CHECKED)


def new_stage(
    op: Operation, name: str, *, is_output: bool = False, scope: str = "global"
) -> StageState:
    """Return a stage that computes `op` with its default loop nest."""
    leaves = (*op.axis, *op.reduce_axis)
    paths: dict[Axis, str] = {}
    for axis in leaves:
        paths[axis] = unique_name(axis.name, paths.values())
    return StageState(name, op.outputs, op, leaves, paths=paths, is_output=is_output, scope=scope)


def same_axes(a: Sequence[Axis], b: Sequence[Axis]) -> bool:
    """Tell whether two lists hold the same axes; ``==`` would build an expression."""
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))


JSON: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class Step:
    """A primitive with its arguments, as data: axes by path, stages by name."""

    primitive: str
    stage: str
    args: Mapping[str, JSON] = field(default_factory=dict)

    def to_json(self) -> dict[str, JSON]:
        """Return a value that ``json`` can write."""
        return {"primitive": self.primitive, "stage": self.stage, "args": dict(self.args)}

    def __str__(self) -> str:
        parts = [self.primitive, self.stage]
        for name, value in self.args.items():
            if isinstance(value, list):
                parts.append(f"({', '.join(str(item) for item in value)})")
            elif name == "nparts":  # a number alone is a factor
                parts.append(f"nparts={value}")
            elif value is not None:
                parts.append(str(value))
        return " ".join(parts)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class State:
    """All stages, producers before consumers."""

    id: str
    stages: tuple[StageState, ...]
    cache: dict[str, Any] = field(default_factory=dict, repr=False)
    """Cached results of analyses, by name; each is a pure function of this state."""

    def stage(self, name: str) -> StageState:
        """Return the stage called `name`."""
        return self._by_name[name]

    def has_stage(self, name: str) -> bool:
        """Tell whether there is a stage called `name`."""
        return name in self._by_name

    def position(self, name: str) -> int:
        """Return the position of a stage in `stages`."""
        return next(n for n, stage in enumerate(self.stages) if stage.name == name)

    @property
    def _by_name(self) -> dict[str, StageState]:
        known: dict[str, StageState] | None = self.cache.get("stages by name")
        if known is None:
            known = self.cache["stages by name"] = {stage.name: stage for stage in self.stages}
        return known

    def find(self, key: Tensor | Operation) -> StageState | None:
        """Return the stage of a tensor or an operation, before or after rewriting by steps."""
        tensor = key if isinstance(key, Tensor) else key.output(0)
        for stage in self.stages:
            if tensor in (*stage.tensors, *stage.op.outputs, *stage.aliases):
                return stage
        return None

    def producer_of(self, tensor: Any) -> StageState:
        """Return the stage that computes a tensor; for a state placeholder, its scan."""
        return next(stage for stage in self.stages if tensor in stage.readable)

    def readers_of(self, stage: StageState) -> tuple[StageState, ...]:
        """Return the stages whose operation reads `stage`."""
        made = set(stage.tensors)
        return tuple(s for s in self.stages if made.intersection(s.op.input_tensors))

    def with_stage(self, stage: StageState, id: str) -> State:
        """Return the state in which `stage` replaces the stage of the same name."""
        return State(id, tuple(stage if s.name == stage.name else s for s in self.stages))


KEPT = ("bodies", "bounds", "obligations", "obligations without bounds")
"""Cache entries that stay valid when only pragmas, strides, unrolled or parallel loops change."""


def with_notes(state: State, stage: StageState, id: str) -> State:
    """Return the state with a new version of `stage`; keep the cache entries in `KEPT`.

    The new version must have the same expression, loops, attachment and vectorized loops.
    """
    result = state.with_stage(stage, id)
    if state.cache.get("placed") is state:
        result.cache["placed"] = result
        result.cache.update({name: state.cache[name] for name in KEPT if name in state.cache})
    return result


def initial_state(outputs: Iterable[Tensor]) -> State:
    """Return the state in which every stage has its default loop nest.

    Its id is a hash of the expression, which is the same in every process. If one output reads
    another, the order in which they are given does not change the id.
    """
    wanted = tuple(outputs)
    results = tuple(t for op in post_order(wanted) for t in op.outputs if t in wanted)
    stages: list[StageState] = []
    for op in post_order(results):
        name = unique_name(op.name, (stage.name for stage in stages))
        is_output = any(tensor in results for tensor in op.outputs)
        stages.append(new_stage(op, name, is_output=is_output))
    names = {
        tensor: f"{stage.name}.{n}" if n else stage.name
        for stage in stages
        for n, tensor in enumerate(stage.tensors)
    }
    for stage in stages:
        names.update((tensor, f"{stage.name}.state{n}") for n, tensor in enumerate(stage.states))
    text = "\n".join(_content(stage, names) for stage in stages)
    return State(hashlib.sha256(text.encode()).hexdigest()[:16], tuple(stages))


def _content(stage: StageState, names: Mapping[Any, str]) -> str:
    """Return the computation of a stage as text; its length is linear in the number of nodes."""
    head = f"{stage.name} {stage.tensor.shape} {stage.tensor.dtype} {stage.is_output}"
    if isinstance(stage.op, ScanOp):
        return f"{head} {[names[t] for t in (*stage.op.input_tensors, *stage.op.states)]}"
    if isinstance(stage.op, ExternOp):
        return f"{head} {[names[t] for t in stage.op.inputs]} {stage.op.text}"
    if not isinstance(stage.op, ComputeOp):
        return head
    reads = stage.op.input_tensors
    buffers = {t: Buffer(names[t], t.shape, t.dtype) for t in reads}

    def rule(node: Node) -> Node:
        if isinstance(node, TensorLoad):
            return Load(buffers[node.tensor], node.indices)  # type: ignore[index]
        return node

    axes = (*stage.op.axis, *stage.op.reduce_axis)
    # As arguments of one call, the axes are numbered in their order.
    arguments = (*(axis.var for axis in axes), *(rewrite(body, rule) for body in stage.op.bodies))
    key = structural_key(Call("", arguments, stage.tensor.dtype), rename=True)
    loops = [(axis.name, axis.start, str(axis.extent)) for axis in axes]
    return f"{head} {loops} {[names[t] for t in reads]} {key}"


_ENCODER = json.JSONEncoder(sort_keys=True)


def child_id(parent_id: str, step: Step) -> str:
    """Return the id of the state that `step` leads to: a hash of the parent's id and the step."""
    text = _ENCODER.encode([parent_id, step.to_json()])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def step_ref(state: State, stage: StageState, axis: Axis) -> StepRef:
    """Return the origin of a loop: the state that made it, its stage and its name."""
    made = axis.id.partition("/")[0]
    return StepRef(made, stage.name, stage.paths[axis])


def buffer_name(stage: StageState, tensor: Tensor) -> str:
    """Return the name of the buffer that holds a tensor of a stage."""
    if len(stage.tensors) == 1:
        return stage.name
    return f"{stage.name}.v{stage.tensors.index(tensor)}"


def is_scan(stage: StageState) -> bool:
    """Tell whether the stage is a scan: the time loop of a recurrence."""
    return isinstance(stage.op, ScanOp)


def is_reduction(stage: StageState) -> bool:
    """Tell whether the stage's operation reduces."""
    return isinstance(stage.op, ComputeOp) and bool(stage.op.reduce_axis)
