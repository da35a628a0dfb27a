"""`Schedule`: how to compute a tensor expression, as a cursor in a history of states.

Long because the reference shows the parameters of each method.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dlcompiler.display import render
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import Axis
from dlcompiler.ir.names import checked_label
from dlcompiler.schedule.absent import Handle
from dlcompiler.schedule.arguments import (
    known_primitive,
    operation_title,
    plain_arguments,
    refusal,
    wrong_arguments,
)
from dlcompiler.schedule.calls import bind_call, foreign_axis, own_name, stage_of_all
from dlcompiler.schedule.history import History, HistoryView, Node
from dlcompiler.schedule.inference import recurrences
from dlcompiler.schedule.inference.placement import placed
from dlcompiler.schedule.legality.obligations import Obligation, obligations
from dlcompiler.schedule.legality.validity import MAX_STAGES, problems
from dlcompiler.schedule.moves.enumeration import Moves, move_of, moves_of
from dlcompiler.schedule.moves.suggestions import Suggestion, suggestion
from dlcompiler.schedule.primitives import StepContext
from dlcompiler.schedule.stage import Stage
from dlcompiler.schedule.stage_group import StageGroup, make_group
from dlcompiler.schedule.state import AtRoot, AttachedAt, State, Step, child_id, initial_state
from dlcompiler.schedule.trace import Trace, encode, trace_of
from dlcompiler.schedule.verdict import LEGAL, Illegal, Pending, Verdict
from dlcompiler.target import Target, resolve
from dlcompiler.target.scopes import scope_named
from dlcompiler.te import Operation, Tensor, post_order
from dlcompiler.te.recurrences import check_recurrences

Listener = Callable[["Schedule"], None]
Named: TypeAlias = Stage | Tensor | Operation


def create_schedule(ops: Operation | Tensor | Iterable[Operation | Tensor]) -> Schedule:
    """Create a schedule in which every stage has its default loop nest.

    Parameters
    ----------
    ops
        The operation (or a list of them) whose result is wanted: ``C.op``; or its tensor.

    Returns
    -------
    Schedule
    """
    items = list(ops) if isinstance(ops, Iterable) and not isinstance(ops, Tensor) else [ops]
    outputs = [tensor for item in items for tensor in _outputs(item)]
    if not outputs:
        raise ScheduleError("create_schedule", "no operation given", expected="C.op or [C.op, …]")
    check_recurrences(outputs)
    if len(post_order(outputs)) > MAX_STAGES:
        raise ScheduleError(
            "create_schedule",
            "the expression has too many tensors",
            got=f"{len(post_order(outputs))}",
            expected=f"at most {MAX_STAGES}",
            hint="schedule parts of it on their own",
        )
    return Schedule(History(initial_state(outputs)))


def _outputs(item: Any) -> tuple[Tensor, ...]:
    if isinstance(item, Tensor):
        return item.op.outputs
    if not isinstance(item, Operation):
        raise ScheduleError(
            "create_schedule", "not an operation", got=repr(item), expected="C.op of a tensor C"
        )
    return item.outputs


@dataclass(frozen=True)
class Attempt:
    """A step tried on a state: the verdict and, when legal, where it leads."""

    verdict: Verdict
    step: Step | None = None
    state: State | None = None
    result: Any = None


class Schedule(Handle):
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

    # -- the current state ---------------------------------------------------------------------

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
        """The node that `redo` moves to: the child that was left last, or the only child."""
        left = self._redo.get(self._node.id)
        if left is None and len(self._node.children) == 1:
            return self._node.children[0]
        return left

    @property
    def lock(self) -> threading.RLock:
        """The lock held while the cursor moves; hold it to read several facts of one state."""
        return self._history.lock

    @property
    def history(self) -> HistoryView:
        """The history; prints as a tree."""
        return HistoryView(self._history, self._node.id)

    @property
    def trace(self) -> Trace:
        """The steps from the start to here."""
        return trace_of(self._node)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All stages, producers before consumers."""
        return tuple(Stage(self, stage.name) for stage in self.state.stages)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The tensors that the program returns."""
        return tuple(t for stage in self.state.stages if stage.is_output for t in stage.tensors)

    @property
    def obligations(self) -> tuple[Obligation, ...]:
        """The pending obligations: later steps must fulfil those that lowering cannot."""
        return obligations(self.state)

    def __getitem__(self, key: Tensor | Operation) -> Stage:
        is_known = isinstance(key, Tensor | Operation)
        stage = self.state.find(key) if is_known else None
        if stage is not None:
            return Stage(self, stage.name)
        if is_known and (name := self._earlier_name(key)):
            return Stage(self, name)
        recurrences.refuse_state(self.state, key)
        operation = f"schedule[{getattr(key, 'name', key)!r}]"
        known = ", ".join(stage.name for stage in self.state.stages)
        expected = f"a tensor or operation of this schedule: {known}"
        if is_known and any(node.state.find(key) for node in self._history.walk()):
            made, hint = self.undone_step(lambda state: state.find(key) is not None)
            raise ScheduleError(
                operation, f"the stage was made by an undone step: {made}", got=repr(key), hint=hint
            )
        raise ScheduleError(
            operation, "no stage of this schedule", got=repr(key), expected=expected
        )

    def _earlier_name(self, key: Tensor | Operation) -> str | None:
        """Return the stage whose operation `key` was before a later step has rewritten it."""
        names = {stage.name for stage in self.state.stages}
        found = (node.state.find(key) for node in reversed(self._node.path()))
        return next((stage.name for stage in found if stage and stage.name in names), None)

    def __repr__(self) -> str:
        names = ", ".join(stage.name for stage in self.state.stages)
        steps = len(self._node.path()) - 1
        return f"Schedule({names}; {steps} step{'s' * (steps != 1)})"

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
        target = self._next(self._node)
        if target is None:
            raise ScheduleError(
                "redo",
                "there is no step to redo"
                if not self._node.children
                else "several steps follow this state",
                hint="s.history shows all states; s.jump(id) goes to one",
            )
        self._move(target)

    def _next(self, node: Node) -> Node | None:
        """Return the node that `redo` moves to from a node."""
        only = node.children[0] if len(node.children) == 1 else None
        return self._redo.get(node.id, only)

    def jump(self, id: str) -> None:
        """Go to any state of the history.

        Parameters
        ----------
        id
            Name of the state, its id, or a unique prefix of the id.

        Raises
        ------
        ScheduleError
            If there is no such state, or several have the prefix.
        """
        self._move(self._history.node(id))

    def describe(
        self, name: str | None = None, note: str | None = None, state: str | None = None
    ) -> None:
        """Give a state a name and a note, which its history shows and exports hold.

        Parameters
        ----------
        name : str, optional
            One line, different from the names of other states; ``s.jump(name)`` returns to this
            state. ``""`` removes the name.
        note : str, optional
            Any text.
        state : str, optional
            The id of the state, a unique prefix of it, or its name; by default the current state.
        """
        with self._history.lock:
            node = self._node if state is None else self._history.node(state)
            self._history.describe(node, name, note)
            self._tell()

    def fork(self, name: str) -> Schedule:
        """Return another schedule at the same state; its steps become a branch of the history.

        Parameters
        ----------
        name
            Name of the new schedule: one line.

        Returns
        -------
        Schedule
            Its axes and stages are those of this schedule.
        """
        return Schedule(self._history, self._node, checked_label(name, "fork"))

    def normalize(self) -> Schedule:
        """Return a fork in which each stage is attached where lowering would compute it.

        The steps that attach them are part of the history of the fork.
        """
        result = self.fork("normalized")
        for stage in placed(self.state).stages:
            at, given = stage.attachment, self.state.stage(stage.name).attachment
            if at is given or isinstance(given, AtRoot):
                continue
            if isinstance(at, AttachedAt):
                result.apply("compute_at", stage.name, {"parent": at.stage, "axis": at.axis})
            else:
                result.apply("compute_root", stage.name, {})
        return result

    def ahead(self) -> list[Node]:
        """Return the states that `redo` would go through, the next one first."""
        found: list[Node] = []
        node = self._next(self._node)
        while node is not None:
            found.append(node)
            node = self._next(node)
        return found

    def shares_history(self, other: Schedule) -> bool:
        """Tell whether `other` is this schedule or a fork of it; forks share axes and stages.

        Parameters
        ----------
        other
            The other schedule.
        """
        return other._history is self._history

    def undone_step(self, has: Callable[[State], bool]) -> tuple[str, str]:
        """Return the step to the first state for which `has` is true, and a hint to go back there.

        Parameters
        ----------
        has
            A condition on states. It must be true for some state of the history, but not for the
            current one.
        """
        ahead = self.ahead()
        node = next(node for node in (*ahead, *self._history.walk()) if has(node.state))
        back = "s.redo()" if node in ahead else f"s.jump({node.id[:8]!r})"
        return node.title(), f"{back} brings it back"

    def _move(self, node: Node) -> None:
        with self._history.lock:
            for ancestor in node.path():
                if ancestor.parent is not None:
                    self._redo[ancestor.parent.id] = ancestor
            self._node = node
            self._tell()

    def _tell(self) -> None:
        """Call the listeners: the current state is another one, or a state has another name."""
        for listener in tuple(self.listeners):
            listener(self)

    # -- steps -----------------------------------------------------------------------------------

    def apply(self, name: str, stage: str, args: Mapping[str, Any]) -> Any:
        """Apply a primitive, or raise the reason for its refusal.

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
                raise refusal(operation_title(self.state, name, stage, args), attempt.verdict)
            assert attempt.step is not None
            assert attempt.state is not None
            node = self._history.add(self._node, attempt.step, attempt.state, attempt.result)
            self._move(node)
            return node.result

    def after(self, attempt: Attempt) -> Schedule:
        """Return a schedule at the state that an attempt leads to; no step may be applied to it.

        The state is not added to the history. Views use it to show what a step would do.

        Parameters
        ----------
        attempt
            The attempt of a legal step at this state.

        Returns
        -------
        Schedule

        Raises
        ------
        ScheduleError
            If the step was refused.
        """
        if attempt.state is None or isinstance(attempt.verdict, Illegal):
            raise ScheduleError("look at a step", "the step is illegal", got=repr(attempt.verdict))
        node = Node(attempt.state, self._node, attempt.step, attempt.result, self._node.number + 1)
        return Schedule(self._history, node, f"{self.name}, one step on")

    def attempt(self, name: str, stage: str, args: Mapping[str, Any]) -> Attempt:
        """Try a primitive without moving the cursor.

        Parameters
        ----------
        name, stage, args
            As for `apply`.

        Returns
        -------
        Attempt
            The verdict and, if the step is legal, the state that it leads to.
        """
        item = known_primitive(f"apply {name!r}", name)
        if not self.state.has_stage(stage):
            raise ScheduleError(
                f"{name} {stage}",
                "no stage has this name",
                expected=", ".join(stage.name for stage in self.state.stages),
            )
        current = self.state.stage(stage)
        args = plain_arguments(item, args)
        for refused in (wrong_arguments(item, self.state, args), foreign_axis(self, args)):
            if refused is not None:  # `Illegal` is falsy
                return Attempt(refused)
        part = recurrences.refusal(self.state, current, name, args)
        verdict = item.check(self.state, current, **args) if part is None else part
        if not verdict:
            return Attempt(verdict)
        step = encode(item, self.state, current, args)
        state_id = child_id(self.state.id, step)
        known = self._history.nodes.get(state_id)
        if known is not None:
            return Attempt(
                self._with_new_obligations(verdict, known.state), step, known.state, known.result
            )
        context = StepContext(state_id, self._history, str(step))
        state, result = item.apply(self.state, current, context, **args)
        for problem in problems(state, self.state):
            return Attempt(problem, step)
        return Attempt(self._with_new_obligations(verdict, state), step, state, result)

    def _with_new_obligations(self, verdict: Verdict, state: State) -> Verdict:
        """Return `Pending` if the next state has a new obligation; otherwise legal."""
        if isinstance(verdict, Pending):
            return verdict
        before = set(self.obligations)
        new = [item for item in obligations(state) if item not in before]
        return Pending(str(new[0])) if new else LEGAL

    # -- primitives of the schedule ----------------------------------------------------------------

    def cache_read(self, tensor: Tensor, scope: str, readers: Any) -> Tensor:
        """Copy a tensor for some of its readers; see `primitives.cache_read`.

        Parameters
        ----------
        tensor
            The tensor to copy: an input, or one that a stage computes.
        scope
            Memory of the copy: ``local`` or ``global``.
        readers
            The tensors or operations (or one of them) that are to read the copy.

        Returns
        -------
        Tensor
            The copy.
        """
        stage, args = self.bind("cache_read", (tensor, scope_named(scope), readers), {})
        result: Tensor = self.apply("cache_read", stage, args)
        return result

    def cache_write(self, tensor: Tensor | Sequence[Tensor], scope: str) -> Any:
        """Compute a tensor in a buffer of its own; see `primitives.cache_write`.

        Parameters
        ----------
        tensor
            The tensor to cache; for an operation with several outputs, the list of all of them.
        scope
            Memory of the new buffer: ``local`` or ``global``.

        Returns
        -------
        Tensor or list of Tensor
            The tensors of the new stage: as many as were given.
        """
        items = tuple(tensor) if isinstance(tensor, list | tuple) else (tensor,)
        stage = stage_of_all(self, "cache_write", items)
        result = self.apply("cache_write", stage, {"scope": scope_named(scope)})
        made = result if isinstance(result, tuple) else (result,)
        return list(made) if isinstance(tensor, list | tuple) else made[0]

    def rfactor(self, tensor: Tensor, axis: Axis, factor_axis: int = 0) -> Any:
        """Reduce in two stages; see `primitives.rfactor`.

        Parameters
        ----------
        tensor
            The reduction, or one of its results.
        axis
            The reduction loop whose iterations get partial results of their own.
        factor_axis
            Number of the dimension that the loop becomes in the partial results; -1 for the last.

        Returns
        -------
        Tensor or list of Tensor
            The partial results: a list when the reduction has several results.
        """
        args = {"axis": axis} | ({"factor_axis": factor_axis} if factor_axis else {})
        result = self.apply("rfactor", self[tensor].name, args)
        return list(result) if isinstance(result, tuple) else result

    def create_group(self, outputs: Any, inputs: Any, include_inputs: bool = False) -> StageGroup:
        """Group stages to attach them together; see `primitives.create_group`.

        Parameters
        ----------
        outputs, inputs
            Tensors or operations, or lists of them. The group holds the stages that compute the
            outputs from the inputs.
        include_inputs
            Whether the stages that compute the inputs belong to it.

        Returns
        -------
        StageGroup
            Its stages are attached together: ``g.compute_at(s[C], axis)``.
        """
        return make_group(self, outputs, inputs, include_inputs)

    # -- asking ------------------------------------------------------------------------------------

    def can(self, name: str, *args: Any, **kwargs: Any) -> Verdict:
        """Return the verdict on a primitive without applying it.

        Parameters
        ----------
        name
            The primitive.
        *args
            As in the call: ``s.can("vectorize", axis)``, ``s.can("split", axis, factor=4)``,
            ``s.can("compute_at", s[P], s[C], axis)``, ``s.can("cache_write", C, "local")``.
            Numbers may be left out: if the step is refused whatever they are, this is the reason.
        **kwargs
            As in the call.

        Returns
        -------
        Verdict
            `Legal`, `Pending` with what later steps must do, or `Illegal` with the reason; an
            illegal one is false.
        """
        stage, bound = self.bind(name, args, kwargs)
        verdict = self.attempt(name, stage, bound).verdict
        move = None if verdict else move_of(self, name, stage, bound)
        return verdict if move is None or move.verdict else move.verdict

    def suggest(self, name: str, *args: Any, **kwargs: Any) -> Suggestion | None:
        """Return the legal change nearest to a refused step; None if nothing near it is legal.

        Parameters
        ----------
        name, *args, **kwargs
            The call, as for `can`: ``s.suggest("split", axis, factor=0)``.
        """
        stage, bound = self.bind(name, args, kwargs)
        return suggestion(self, name, stage, bound)

    def bind(
        self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[str, dict[str, Any]]:
        """Return the stage name and the named arguments of a call of `can`.

        Parameters
        ----------
        name
            The primitive.
        args, kwargs
            The arguments of the call, by position and by name.
        """
        return bind_call(self, name, args, kwargs)

    def moves(self, stage: Named | None = None, target: str | Target | None = None) -> Moves:
        """Return every move on a stage (or on all) with its verdict.

        Parameters
        ----------
        stage
            A stage, or its tensor or operation; by default, all stages.
        target
            The machine. Its limits are applied to each move. Moves that need the threads of a GPU
            are listed only if it is one.
        """
        names = [s.name for s in self.state.stages] if stage is None else [self._stage_name(stage)]
        machine = None if target is None else resolve(target)
        return Moves(move for name in names for move in moves_of(self, name, target=machine))

    def legal_moves(self, stage: Named | None = None, target: str | Target | None = None) -> Moves:
        """Return the moves that are legal.

        Parameters
        ----------
        stage, target
            As for `moves`.
        """
        return Moves(move for move in self.moves(stage, target) if move.verdict)

    def _stage_name(self, stage: Named) -> str:
        return own_name(self, stage) if isinstance(stage, Stage) else self[stage].name
