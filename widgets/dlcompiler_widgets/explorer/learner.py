"""Predict first: before a step is applied, ask the learner what it will do; reveal it afterwards.

The answers are the learner's own. They stay in this session: no export, no record, no trait and no
saved notebook holds them. The widget sends them to the page as messages, which no host stores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dlcompiler.errors import DLCompilerError, ScheduleError
from dlcompiler.schedule import Node, Schedule, Step
from dlcompiler.schedule.trace import decode
from dlcompiler.views.history.prediction import (
    FACTORS,
    NO_LEVEL,
    SAME,
    SPEEDS,
    Answer,
    Facts,
    between,
    reveal,
)
from dlcompiler.views.memory.metrics import metrics
from dlcompiler_widgets.explorer.measured import measured_for, traffic_of
from dlcompiler_widgets.explorer.moving import wanted_step
from dlcompiler_widgets.explorer.status import Status
from dlcompiler_widgets.explorer.targets import why_not_measured

if TYPE_CHECKING:
    from dlcompiler_widgets.explorer.session import Session

Json = dict[str, Any]

ASKED = ("apply", "move", "take")
"""Requests that apply steps."""


@dataclass(frozen=True)
class Question:
    """A step that waits for a prediction."""

    op: str
    args: Mapping[str, Any]
    title: str
    before: Node
    """The state that the step is applied to."""
    at: Node
    """The current state when it was asked."""


class Learner:
    """The mode in which steps are predicted first, with the learner's answers."""

    def __init__(self) -> None:
        self.is_on = False
        self.question: Question | None = None
        self._answers: dict[str, tuple[Node, str, Answer]] = {}
        """By id of the state that the step led to: the state before, the step, the answer."""
        self._is_applying = False

    def asks(self, session: Session, op: str, args: Mapping[str, Any]) -> bool:
        """Ask for a prediction if a request applies a legal step; return whether it must wait."""
        if not self.is_on or self._is_applying or op not in ASKED or why_nothing(session):
            return False
        try:
            question = _question(session, op, args)
        except DLCompilerError:
            return False  # the request itself says why it is refused
        if question is not None:
            self.question = question
            session.status = Status(f"Predict first: what will {question.title} do? Or skip.")
        return question is not None

    def settle(self, session: Session, answer: Answer | None) -> None:
        """Apply the step that waits, and keep what was predicted."""
        question = self._open(session)
        if question is None:
            raise ScheduleError("predict a step", "no step waits for a prediction")
        self.question = None
        with self._applying():
            is_done = session.handle(question.op, question.args)
        if is_done and answer is not None:
            reached = session.schedule.node.id
            self._answers[reached] = (question.before, question.title, answer)

    def withdraw(self) -> None:
        """Forget the step that waits."""
        self.question = None

    def close(self, session: Session) -> None:
        """Forget what was predicted of the step to the current state."""
        self._answers.pop(session.schedule.node.id, None)

    def contents(self, session: Session) -> Json:
        """Return what the page shows: the open question, or the reveal of the current state."""
        question = self._open(session)
        asked = None if question is None else {"title": question.title, **_choices(session)}
        revealed = None if question is not None else self._revealed(session)
        return {"is_on": self.is_on, "question": asked, "reveal": revealed}

    def _open(self, session: Session) -> Question | None:
        """Return the open question; it is withdrawn if another state was gone to."""
        if self.question is not None and self.question.at is not session.schedule.node:
            self.question = None
        return self.question

    def _revealed(self, session: Session) -> Json | None:
        node = session.schedule.node
        if not self.is_on or node.id not in self._answers:
            return None
        before, title, answer = self._answers[node.id]
        facts = (_facts(session, each) for each in (before, node))
        found = reveal(title, answer, *facts, has_times=not why_not_measured(session))
        # What is still to be measured is measured together: the machine is the same for both then.
        return {**found, "states": [before.id, node.id] if found["hint"] else []}

    @contextmanager
    def _applying(self) -> Iterator[None]:
        self._is_applying = True
        try:
            yield
        finally:
            self._is_applying = False


def why_nothing(session: Session) -> str:
    """Return why nothing can be revealed for a session's target; '' if something can."""
    if session.target.caches and not session.target.thread_axes:
        return ""
    return why_not_measured(session)


def _question(session: Session, op: str, args: Mapping[str, Any]) -> Question | None:
    """Return the question about a request; None if its step is refused."""
    here = session.schedule.node
    if op == "take":
        steps, start = args.get("steps"), args.get("start")
        items = steps if isinstance(steps, list) else []
        wanted = [wanted_step(session, {"step": step}) for step in items]
        way = session.schedule.fork("predicted")
        if start:
            way.jump(str(start))
    else:
        wanted, way = [wanted_step(session, args)], session.schedule
    if not wanted or not _is_legal(way, wanted[0]):
        return None
    return Question(op, args, ", then ".join(map(str, wanted)), way.node, here)


def _is_legal(schedule: Schedule, step: Step) -> bool:
    args = decode(schedule.state, step)
    return bool(schedule.attempt(step.primitive, step.stage, args).verdict)


def _choices(session: Session) -> Json:
    """Return the answers to choose from; a question that cannot be decided has none."""
    names = [level.name for level in session.target.caches]
    is_timed = not why_not_measured(session)
    levels = [{"name": name, "text": between(name, names)} for name in names]
    return {
        "speeds": list(SPEEDS) if is_timed else [],
        "same": SAME,
        "factors": list(FACTORS) if is_timed else [],
        "levels": [*levels, {"name": NO_LEVEL, "text": NO_LEVEL}] if levels else [],
    }


def _facts(session: Session, node: Node) -> Facts:
    measured = measured_for(session, node)
    return Facts(
        node.name or node.title(),
        measured.seconds if measured else None,
        measured.shown.spread_s if measured else 0.0,
        traffic_of(session, node)[0],
        metrics(node.state, session.args, session.target),
    )


# -- requests -------------------------------------------------------------------------------------


def set_mode(session: Session, args: Mapping[str, Any]) -> None:
    """Switch the mode ``on`` or off."""
    is_on = args.get("on") is True
    if is_on and (why := why_nothing(session)):
        raise ScheduleError("predict first", "nothing can be revealed", because=why)
    session.learner.is_on = is_on
    session.learner.withdraw()
    session.status = Status(
        "Predict first is on: each step asks what it will do. The answers stay in this session."
        if is_on
        else "Predict first is off."
    )


def answer(session: Session, args: Mapping[str, Any]) -> None:
    """Apply the step that waits: ``speed``, ``factor`` and ``level`` are what was predicted."""
    choices = _choices(session)
    levels = [each["name"] for each in choices["levels"]]
    known = {"speed": choices["speeds"], "factor": choices["factors"], "level": levels}
    said = {kind: args.get(kind) or "" for kind in known}
    for kind, value in said.items():
        if value and value not in known[kind]:
            raise ScheduleError(
                "predict a step", f"there is no such {kind}", got=repr(value),
                expected=", ".join(known[kind]),
            )  # fmt: skip
    if session.learner.question is not None and not any(said.values()):
        session.status = Status("Choose an answer first, or press Skip.")
        return
    session.learner.settle(session, Answer(**said))


def skip(session: Session, args: Mapping[str, Any]) -> None:
    """Apply the step that waits, without a prediction."""
    session.learner.settle(session, None)


def withdraw(session: Session, args: Mapping[str, Any]) -> None:
    """Do not apply the step that waits; without one, hide what was revealed."""
    if session.learner.question is None:
        session.learner.close(session)
        session.status = Status("Closed.")
        return
    session.learner.withdraw()
    session.status = Status("The step was not applied.")


ACTIONS = {"predicting": set_mode, "answer": answer, "skip": skip, "withdraw": withdraw}
"""By the name of the request."""
