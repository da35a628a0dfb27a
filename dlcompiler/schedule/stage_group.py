"""`StageGroup`: the handle on stages that are moved together, which ``create_group`` returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dlcompiler.errors import ScheduleError
from dlcompiler.ir import Axis
from dlcompiler.schedule.absent import Handle
from dlcompiler.schedule.stage import Stage

if TYPE_CHECKING:
    from dlcompiler.schedule.schedule import Schedule


class StageGroup(Handle):
    """Handle on a group by its name; its methods act on the current state of the schedule."""

    __slots__ = ("name", "schedule")

    def __init__(self, schedule: Schedule, name: str) -> None:
        self.schedule = schedule
        self.name = name

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of the group, producers before consumers."""
        stages = self.schedule.state.stages
        found = [s.name for s in stages if s.group is not None and s.group.name == self.name]
        if not found:
            raise ScheduleError(
                f"group {self.name}", "made by an undone step", hint="s.redo() brings it back"
            )
        return tuple(Stage(self.schedule, name) for name in found)

    def __repr__(self) -> str:
        return f"StageGroup({self.name}: {', '.join(stage.name for stage in self.stages)})"

    def compute_at(self, parent: Stage, scope: Axis) -> None:
        """Compute the group inside a loop of its reader. See `primitives.compute_group_at`.

        Parameters
        ----------
        parent
            The reader: ``s[C]``.
        scope
            A loop of the reader.
        """
        is_stage = isinstance(parent, Stage)
        if not (is_stage and parent.schedule.shares_history(self.schedule)):
            raise ScheduleError(
                f"compute_at {self.name}", "not a stage of this schedule",
                got=repr(parent), expected="s[consumer]",
            )  # fmt: skip
        self._apply("compute_group_at", {"parent": parent.name, "axis": scope})

    def compute_root(self) -> None:
        """Give the stages nests of their own. See `primitives.compute_group_root`."""
        self._apply("compute_group_root", {})

    def _apply(self, primitive: str, args: dict[str, Any]) -> None:
        self.schedule.apply(primitive, self.stages[0].name, args)


def make_group(
    schedule: Schedule, outputs: Any, inputs: Any, include_inputs: bool = False
) -> StageGroup:
    """Group the stages between some inputs and outputs; see `primitives.create_group`.

    Parameters
    ----------
    schedule
        The schedule.
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
    names = [
        tuple(dict.fromkeys(schedule[item].name for item in _listed(tensors)))
        for tensors in (outputs, inputs)
    ]
    if not names[0]:
        raise ScheduleError("create_group", "no output is given", expected="[C], a list of tensors")
    args = {"outputs": names[0], "inputs": names[1]}
    included = {"include_inputs": 1} if include_inputs else {}
    return StageGroup(schedule, schedule.apply("create_group", names[0][0], args | included))


def _listed(tensors: Any) -> tuple[Any, ...]:
    return tuple(tensors) if isinstance(tensors, list | tuple) else (tensors,)
