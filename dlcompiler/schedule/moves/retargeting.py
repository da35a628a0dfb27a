"""Take the steps of a schedule over to another target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dlcompiler.errors import ScheduleError
from dlcompiler.ir import SHARED_SCOPES
from dlcompiler.schedule.moves.device_moves import verdict_on
from dlcompiler.schedule.trace import decode
from dlcompiler.schedule.verdict import Illegal
from dlcompiler.target import Target

if TYPE_CHECKING:
    from dlcompiler.schedule.history import Node
    from dlcompiler.schedule.schedule import Schedule
    from dlcompiler.schedule.state import Step


@dataclass(frozen=True)
class LeftOut:
    """A step that is not legal for another target, with the reason."""

    step: Step
    reason: str

    def __str__(self) -> str:
        return f"{self.step}: {self.reason}"


@dataclass(frozen=True)
class Retargeted:
    """Where the steps of a schedule lead that are legal for another target."""

    node: Node
    """The state after the steps that are kept; it belongs to the same history."""
    kept: tuple[Step, ...]
    left_out: tuple[LeftOut, ...]


def retargeted(schedule: Schedule, target: Target, before: Target | None = None) -> Retargeted:
    """Repeat the steps of a schedule one by one, without those that a target refuses.

    A later step that needs the result of one that was left out, such as the loops of a copy, is
    left out, too. The schedule is not changed; states that did not exist before become a branch of
    its history.

    Parameters
    ----------
    schedule
        The schedule, at its state.
    target
        The target that the steps are for.
    before
        The target that they were for: a step that this one refuses, too, is kept, because nothing
        changes for it.

    Returns
    -------
    Retargeted

    Examples
    --------
    >>> from dlcompiler import te
    >>> from dlcompiler.schedule import create_schedule
    >>> from dlcompiler.target import resolve
    >>> A = te.placeholder((64, 64), name="A")
    >>> B = te.compute((64, 64), lambda i, j: A[j, i], name="B")
    >>> s = create_schedule(B.op)
    >>> s[B].parallel(B.op.axis[0])
    >>> outer, inner = s[B].split(B.op.axis[1], factor=8)
    >>> found = retargeted(s, resolve("gpu"))
    >>> [str(step) for step in found.kept], [str(each) for each in found.left_out]
    (['split B j 8'], ['parallel B i: gpu has no parallel loops'])
    """
    at = schedule.fork("retargeted")
    root, *others = schedule.node.path()
    at.jump(root.id)
    kept: list[Step] = []
    left_out: list[LeftOut] = []
    for node in others:
        assert node.step is not None
        reason = _repeat(at, node.step, target, before)
        if reason is None:
            kept.append(node.step)
        else:
            left_out.append(LeftOut(node.step, reason))
    return Retargeted(at.node, tuple(kept), tuple(left_out))


def _repeat(schedule: Schedule, step: Step, target: Target, before: Target | None) -> str | None:
    """Apply a step; if it is refused for the target, return the reason."""
    try:
        args = decode(schedule.state, step)
    except ScheduleError as error:
        return f"{error.problem}, since the step that made it is left out"
    attempt = schedule.attempt(step.primitive, step.stage, args)
    verdict = verdict_on(target, attempt, args, schedule.state)
    if isinstance(verdict, Illegal) and attempt.verdict and before is not None:
        verdict = verdict if verdict_on(before, attempt, args, schedule.state) else attempt.verdict
    if isinstance(verdict, Illegal):
        return verdict.reason
    if before is None and (reason := _needs_threads(step, target)):
        return reason
    schedule.apply(step.primitive, step.stage, args)
    return None


def _needs_threads(step: Step, target: Target) -> str | None:
    """Return why memory that threads share cannot be used by a target; None: it can.

    A program without threads may have such memory only inside loops that are bound to threads, and
    all bindings are left out for a target without thread axes.
    """
    scope = step.args.get("scope")
    if target.thread_axes or scope not in SHARED_SCOPES:
        return None
    return f"{target.name} has no threads that could share {scope} memory"
