"""How to compute a tensor expression: schedules, their steps, history and legality."""

from dlcompiler.schedule.history import History, HistoryView, Node
from dlcompiler.schedule.inference.bounds import Bounds, StageBounds, infer_bounds
from dlcompiler.schedule.legality.obligations import (
    Obligation,
    has_bounds,
    obligations,
    open_obligations,
)
from dlcompiler.schedule.moves.enumeration import Domain, Move, Moves
from dlcompiler.schedule.moves.suggestions import Suggestion
from dlcompiler.schedule.schedule import Schedule, create_schedule
from dlcompiler.schedule.stage import Stage
from dlcompiler.schedule.state import AttachedAt, StageState, State, Step
from dlcompiler.schedule.trace import Trace
from dlcompiler.schedule.verdict import LEGAL, Illegal, Legal, Pending, Verdict

__all__ = [
    "LEGAL",
    "AttachedAt",
    "Bounds",
    "Domain",
    "History",
    "HistoryView",
    "Illegal",
    "Legal",
    "Move",
    "Moves",
    "Node",
    "Obligation",
    "Pending",
    "Schedule",
    "Stage",
    "StageBounds",
    "StageState",
    "State",
    "Step",
    "Suggestion",
    "Trace",
    "Verdict",
    "create_schedule",
    "has_bounds",
    "infer_bounds",
    "obligations",
    "open_obligations",
]
