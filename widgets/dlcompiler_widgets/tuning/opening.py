"""Open a trial in the Explorer, if possible as a branch of the history that is open."""

from __future__ import annotations

from dlcompiler.autotune import Trial, TuningRun
from dlcompiler.errors import DLCompilerError
from dlcompiler.schedule import Schedule
from dlcompiler.schedule.saved.document import Saved, to_data
from dlcompiler.te import Tensor
from dlcompiler_widgets.explorer import Explorer


def open_trial(run: TuningRun, trial: Trial, explorer: Explorer | None) -> Explorer:
    """Return an Explorer at the schedule of a trial.

    Parameters
    ----------
    run : TuningRun
        The run of the trial.
    trial : Trial
        What to open.
    explorer : Explorer, optional
        The open Explorer. If it computes the same expression, the trial becomes a branch of its
        history; otherwise a new Explorer is opened.

    Raises
    ------
    DLCompilerError
        If the template refuses the config.
    """
    plan = run.plan
    schedule, args = plan.operator.template(plan.workload, plan.target, trial.config)
    name = f"trial {trial.index}"
    if explorer is not None and _is_same(schedule, args, explorer):
        _branch(schedule, explorer.schedule, name)
        return explorer
    schedule.describe(name=name)
    return Explorer(schedule, args, plan.target, name=plan.workload.op)


def _is_same(schedule: Schedule, args: tuple[Tensor, ...], explorer: Explorer) -> bool:
    """Tell whether an Explorer shows the expression of a schedule."""
    other = explorer.schedule
    with other.lock:
        try:
            first, second = (
                to_data(Saved(each, tuple(tensors)), is_whole=False)["program"]
                for each, tensors in ((schedule, args), (other, explorer._session.args))
            )
        except DLCompilerError:
            return False
    return bool(first == second)


def _branch(schedule: Schedule, onto: Schedule, name: str) -> None:
    """Add the steps of a schedule as a branch of another history, and select it."""
    with onto.lock:
        # A second cursor on the history has no listeners, so the page is updated once at the end.
        there = onto.fork("opened")
        there.jump(there.history.history.root.id)
        schedule.trace.replay(there)
        if not there.node.name:
            there.describe(name=name)
        onto.jump(there.node.id)
