"""`Schedule` and `Stage`: the handles that a user holds on a history of states."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dlcompiler.display import render
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import Axis
from dlcompiler.schedule.history import History, HistoryView, Node
from dlcompiler.schedule.moves import Move, moves_of
from dlcompiler.schedule.primitives import REGISTRY, Making, primitive
from dlcompiler.schedule.state import Inlined, StageState, State, Step, child_id, new_stage
from dlcompiler.schedule.state import unique_name as unique
from dlcompiler.schedule.trace import Trace, encode
from dlcompiler.schedule.validity import Obligation, obligations, problems
from dlcompiler.schedule.verdict import LEGAL, Illegal, Pending, Verdict
from dlcompiler.te import Operation, Tensor, post_order

Listener = Callable[["Schedule"], None]


def create_schedule(ops: Operation | Tensor | Iterable[Operation | Tensor]) -> Schedule:
    """Start a schedule: every stage by its plain loop nest.

    Parameters
    ----------
    ops
        The operation (or a list of them) whose result is wanted: ``C.op``. Tensors are taken too.

    Returns
    -------
    Schedule
    """
    items = list(ops) if isinstance(ops, Iterable) and not isinstance(ops, Tensor) else [ops]
    outputs = [item if isinstance(item, Tensor) else _output(item) for item in items]
    if not outputs:
        raise ScheduleError("create_schedule", "no operation given", expected="C.op or [C.op, …]")
    stages: list[StageState] = []
    for op in post_order(outputs):
        name = unique(op.name, (stage.name for stage in stages))
        stages.append(new_stage(op, name, is_output=op.output(0) in outputs))
    text = "\n".join(
        f"{s.name}{s.tensor.shape}{s.tensor.dtype} {getattr(s.op, 'body', '')}" for s in stages
    )
    root = State(hashlib.sha256(text.encode()).hexdigest()[:16], tuple(stages))
    return Schedule(History(root))


def _output(op: Any) -> Tensor:
    if not hasattr(op, "output"):
        raise ScheduleError(
            "create_schedule", "not an operation", got=repr(op), expected="C.op of a tensor C"
        )
    tensor: Tensor = op.output(0)
    return tensor


@dataclass(frozen=True)
class Attempt:
    """A step tried on a state: the verdict and, when legal, where it leads."""

    verdict: Verdict
    step: Step | None = None
    state: State | None = None
    result: Any = None


class Schedule:
    """How to compute a tensor expression: a cursor in a history of immutable states.

    ``s[C]`` gives a stage to apply primitives to. Each call moves the cursor to a new state;
    `undo`, `redo`, `jump` and `fork` move or copy it and cost nothing.
    """

    def __init__(self, history: History, cursor: Node | None = None, name: str = "main") -> None:
        self._history = history
        self._node = cursor or history.root
        self._redo: dict[str, Node] = {}
        self.name = name
        self.listeners: list[Listener] = []

    # -- where we are --------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """The state at the cursor."""
        return self._node.state

    @property
    def node(self) -> Node:
        """The cursor's node in the history."""
        return self._node

    @property
    def next_node(self) -> Node | None:
        """Where `redo` would go: the state that was left last, or the only one that follows."""
        left = self._redo.get(self._node.id)
        if left is None and len(self._node.children) == 1:
            return self._node.children[0]
        return left

    @property
    def lock(self) -> threading.RLock:
        """Held while a step is applied; hold it to read several things of one state."""
        return self._history.lock

    @property
    def history(self) -> HistoryView:
        """The history; prints as a tree."""
        return HistoryView(self._history, self._node.id)

    @property
    def trace(self) -> Trace:
        """The steps from the start to here."""
        steps = tuple(node.step for node in self._node.path() if node.step is not None)
        return Trace(steps, self._history.root.state)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All stages, producers before consumers."""
        return tuple(Stage(self, stage.name) for stage in self.state.stages)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The tensors whose values are wanted."""
        return tuple(stage.tensor for stage in self.state.stages if stage.is_output)

    @property
    def obligations(self) -> tuple[Obligation, ...]:
        """What must be put right before the program can be lowered."""
        return obligations(self.state)

    def __getitem__(self, key: Tensor | Operation) -> Stage:
        stage = self.state.find(key) if hasattr(key, "op") or hasattr(key, "output") else None
        if stage is None:
            raise ScheduleError(
                f"schedule[{getattr(key, 'name', key)!r}]",
                self._why_unknown(key),
                got=repr(key),
                expected="a tensor or operation of this schedule: "
                + ", ".join(stage.name for stage in self.state.stages),
            )
        return Stage(self, stage.name)

    def _why_unknown(self, key: Any) -> str:
        if hasattr(key, "op") or hasattr(key, "output"):
            for node in self._history.walk():
                if node.state.find(key) is not None and node.step is not None:
                    return f"the stage was made by an undone step: {node.title()}"
        return "no stage of this schedule"

    def __repr__(self) -> str:
        names = ", ".join(stage.name for stage in self.state.stages)
        return f"Schedule({names}; {len(self._node.path()) - 1} steps)"

    def _repr_html_(self) -> str:
        return render("schedule", self)

    # -- moving in the history -------------------------------------------------------------------

    def undo(self) -> None:
        """Go back one step."""
        if self._node.parent is None:
            raise ScheduleError("undo", "there is no step to undo")
        self._redo[self._node.parent.id] = self._node
        self._move(self._node.parent)

    def redo(self) -> None:
        """Go forward again, to the state that was left last."""
        target = self.next_node
        if target is None:
            raise ScheduleError(
                "redo",
                "there is no step to redo" if not self._node.children else "several steps lead on",
                hint="s.history shows all states; s.jump(id) goes to one",
            )
        self._move(target)

    def jump(self, id: str) -> None:
        """Go to any state of the history, by its id or a unique prefix of it."""
        self._move(self._history.node(id))

    def fork(self, name: str) -> Schedule:
        """Return another schedule at the same state; its steps become a branch of the history."""
        return Schedule(self._history, self._node, name)

    def _move(self, node: Node) -> None:
        for ancestor in node.path():
            if ancestor.parent is not None:
                self._redo[ancestor.parent.id] = ancestor
        self._node = node
        for listener in tuple(self.listeners):
            listener(self)

    # -- steps -----------------------------------------------------------------------------------

    def apply(self, name: str, stage: str, args: Mapping[str, Any]) -> Any:
        """Apply a primitive, or raise what forbids it.

        Parameters
        ----------
        name
            The primitive, such as ``split``.
        stage
            Name of the stage.
        args
            Arguments by name: axes, numbers, stage names.

        Raises
        ------
        ScheduleError
            If the step is illegal; the schedule stays as it was.
        """
        with self._history.lock:
            attempt = self.attempt(name, stage, args)
            if isinstance(attempt.verdict, Illegal):
                raise refusal(self._operation(name, stage, args), attempt.verdict)
            assert attempt.step is not None and attempt.state is not None
            node = self._history.add(self._node, attempt.step, attempt.state, attempt.result)
            self._move(node)
            return node.result

    def attempt(self, name: str, stage: str, args: Mapping[str, Any]) -> Attempt:
        """Try a primitive without moving the cursor."""
        item = primitive(name)
        current = self.state.stage(stage)
        if foreign := self._foreign(args):
            return Attempt(foreign)
        verdict = item.check(self.state, current, **args)
        if not verdict:
            return Attempt(verdict)
        step = encode(item, self.state, current, args)
        state_id = child_id(self.state.id, step)
        known = self._history.nodes.get(state_id)
        if known is not None:
            return Attempt(verdict, step, known.state, known.result)
        making = Making(state_id, self._history, str(step))
        state, result = item.apply(self.state, current, making, **args)
        for problem in problems(state):
            return Attempt(problem, step)
        if isinstance(verdict, Pending):
            return Attempt(verdict, step, state, result)
        before = set(self.obligations)
        owed = [item for item in obligations(state) if item not in before]
        return Attempt(Pending(str(owed[0])) if owed else LEGAL, step, state, result)

    def _foreign(self, args: Mapping[str, Any]) -> Illegal | None:
        """Refuse axes of another schedule, and of steps that are undone at the cursor."""
        for value in args.values():
            for axis in value if isinstance(value, tuple) else (value,):
                if not isinstance(axis, Axis) or axis.lineage is None:
                    continue
                if axis.lineage is not self._history:
                    return Illegal(
                        "structural",
                        "the axis belongs to another schedule",
                        got=f"axis {axis.name}",
                        hint="take the axes from this schedule's own stages and steps",
                    )
                if not any(axis in stage.paths for stage in self.state.stages):
                    return Illegal(
                        "structural",
                        "the axis was made by an undone step",
                        got=f"axis {axis.name}, made by: {self._history.step_text(axis.id)}",
                        hint="s.redo() brings it back",
                    )
        return None

    def _operation(self, name: str, stage: str, args: Mapping[str, Any]) -> str:
        axes = [v for v in args.values() if isinstance(v, Axis | tuple)]
        current = self.state.stage(stage)
        names = [
            current.paths.get(axis, axis.name)
            for value in axes
            for axis in (value if isinstance(value, tuple) else (value,))
            if isinstance(axis, Axis)
        ]
        if not names:
            return f"{name} {stage}"
        if name == "compute_at":
            return f"{name} {stage} at {args['parent']}.{names[0]}"
        return f"{name} {stage}.{names[0]}" if len(names) == 1 else f"{name} {stage} {tuple(names)}"

    # -- primitives of the schedule ----------------------------------------------------------------

    def cache_write(self, tensor: Tensor, scope: str) -> Tensor:
        """Compute a tensor in a buffer of its own; see `primitives.cache_write`.

        Parameters
        ----------
        tensor
            The tensor to cache.
        scope
            Memory of the new buffer: ``local`` or ``global``.

        Returns
        -------
        Tensor
            The tensor of the new stage.
        """
        result: Tensor = self.apply("cache_write", self[tensor].name, {"scope": scope})
        return result

    # -- asking ------------------------------------------------------------------------------------

    def can(self, name: str, *args: Any, **kwargs: Any) -> Verdict:
        """Ask whether a primitive may be applied, without applying it.

        Parameters
        ----------
        name
            The primitive.
        *args
            As in the call: ``s.can("vectorize", axis)``, ``s.can("split", axis, factor=4)``,
            ``s.can("compute_at", s[P], s[C], axis)``, ``s.can("cache_write", C, "local")``.
        """
        stage, bound = self.bind(name, args, kwargs)
        return self.attempt(name, stage, bound).verdict

    def bind(
        self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[str, dict[str, Any]]:
        """Return the stage name and the named arguments of a call as `can` takes it."""
        if name not in REGISTRY:
            raise ScheduleError(
                f"can {name!r}", "no such primitive", expected=", ".join(sorted(REGISTRY))
            )
        parameters = primitive(name).parameters
        stage, rest = self._subject(name, args)
        first = next(iter(parameters), None)
        if first is not None and parameters[first] == "axes":
            return stage, {first: tuple(rest)}
        values = [self._argument(value) for value in rest]
        bound = {**dict(zip(parameters, values, strict=False)), **kwargs}
        if len(values) > len(parameters) or set(bound) - set(parameters):
            raise ScheduleError(
                f"can {name!r}", "wrong arguments", got=f"{args}", expected=", ".join(parameters)
            )
        return stage, bound

    def _subject(self, name: str, args: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
        """Return the stage that a call is about: given first, or the owner of the first axis."""
        if not args:
            raise ScheduleError(f"can {name!r}", "no stage or axis given")
        head = args[0]
        if isinstance(head, Stage):
            return head.name, args[1:]
        if not isinstance(head, Axis):
            return self[head].name, args[1:]
        owners = [s for s in self.state.stages if s.has_leaf(head)] or [
            s for s in self.state.stages if head in s.paths
        ]
        return (owners[0] if owners else self.state.stages[-1]).name, args

    def _argument(self, value: Any) -> Any:
        if isinstance(value, Stage):
            return value.name
        return self[value].name if isinstance(value, Tensor) else value

    def moves(self, stage: Stage | Tensor | Operation | None = None) -> tuple[Move, ...]:
        """Return every move on a stage (or on all), legal or not, each with its verdict."""
        names = [self._stage_name(stage)] if stage is not None else [
            s.name for s in self.state.stages
        ]  # fmt: skip
        return tuple(move for name in names for move in moves_of(self, name))

    def legal_moves(self, stage: Stage | Tensor | Operation | None = None) -> tuple[Move, ...]:
        """Return the moves that may be made."""
        return tuple(move for move in self.moves(stage) if move.verdict)

    def _stage_name(self, stage: Stage | Tensor | Operation) -> str:
        return stage.name if isinstance(stage, Stage) else self[stage].name


def refusal(operation: str, verdict: Illegal) -> ScheduleError:
    """Return the error that says why a step is illegal."""
    return ScheduleError(
        operation, verdict.reason, got=verdict.got, because=verdict.because, hint=verdict.hint
    )


class Stage:
    """A name that acts on the schedule's current state: ``s[C]``."""

    __slots__ = ("name", "schedule")

    def __init__(self, schedule: Schedule, name: str) -> None:
        self.schedule = schedule
        self.name = name

    @property
    def state(self) -> StageState:
        """What the stage is at the schedule's cursor."""
        for stage in self.schedule.state.stages:
            if stage.name == self.name:
                return stage
        raise ScheduleError(
            f"stage {self.name}", "made by a step that is undone", hint="s.redo() brings it back"
        )

    @property
    def op(self) -> Operation:
        """The operation computed, as rewritten by the steps so far."""
        return self.state.op

    @property
    def tensor(self) -> Tensor:
        """The tensor computed."""
        return self.state.tensor

    @property
    def leaf_iter_vars(self) -> tuple[Axis, ...]:
        """The loops, outermost first."""
        return self.state.leaves

    @property
    def all_iter_vars(self) -> tuple[Axis, ...]:
        """All axes that the stage ever had."""
        return tuple(self.state.paths)

    @property
    def scope(self) -> str:
        """The memory of the stage's buffer."""
        return self.state.scope

    @property
    def is_inlined(self) -> bool:
        """Tell whether the stage has no loops of its own."""
        return isinstance(self.state.attachment, Inlined)

    def __repr__(self) -> str:
        return f"Stage({self.name}: {', '.join(self.state.paths[a] for a in self.state.leaves)})"

    def _apply(self, primitive_name: str, **args: Any) -> Any:
        self.state  # noqa: B018 - refuses a stage of an undone step
        return self.schedule.apply(primitive_name, self.name, args)

    def split(
        self, parent: Axis, factor: int | None = None, nparts: int | None = None
    ) -> tuple[Axis, Axis]:
        """Split a loop; returns (outer, inner). See `primitives.split`."""
        result: tuple[Axis, Axis] = self._apply("split", axis=parent, factor=factor, nparts=nparts)
        return result

    def fuse(self, *axes: Axis) -> Axis:
        """Fuse adjacent loops; returns the fused axis. See `primitives.fuse`."""
        result: Axis = self._apply("fuse", axes=_flat(axes))
        return result

    def reorder(self, *axes: Axis) -> None:
        """Put loops into the order given. See `primitives.reorder`."""
        self._apply("reorder", axes=_flat(axes))

    def tile(
        self, x_parent: Axis, y_parent: Axis, x_factor: int, y_factor: int
    ) -> tuple[Axis, Axis, Axis, Axis]:
        """Tile two loops; returns (x outer, y outer, x inner, y inner). See `primitives.tile`."""
        result: tuple[Axis, Axis, Axis, Axis] = self._apply(
            "tile", x=x_parent, y=y_parent, x_factor=x_factor, y_factor=y_factor
        )
        return result

    def vectorize(self, var: Axis) -> None:
        """Run a loop as vector lanes. See `primitives.vectorize`."""
        self._apply("vectorize", axis=var)

    def unroll(self, var: Axis) -> None:
        """Repeat the body instead of looping. See `primitives.unroll`."""
        self._apply("unroll", axis=var)

    def parallel(self, var: Axis) -> None:
        """Run a loop on several cores. See `primitives.parallel`."""
        self._apply("parallel", axis=var)

    def compute_at(self, parent: Stage, scope: Axis) -> None:
        """Compute this stage inside a loop of `parent`. See `primitives.compute_at`."""
        if not isinstance(parent, Stage) or parent.schedule._history is not self.schedule._history:
            raise ScheduleError(
                f"compute_at {self.name}",
                "not a stage of this schedule",
                got=repr(parent),
                expected="s[consumer]",
            )
        self._apply("compute_at", parent=parent.name, axis=scope)

    def compute_inline(self) -> None:
        """Substitute this stage into its readers. See `primitives.compute_inline`."""
        self._apply("compute_inline")

    def compute_root(self) -> None:
        """Give this stage its own loop nest. See `primitives.compute_root`."""
        self._apply("compute_root")


def _flat(axes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return axes given one by one or as a single list."""
    if len(axes) == 1 and isinstance(axes[0], list | tuple):
        return tuple(axes[0])
    return axes
