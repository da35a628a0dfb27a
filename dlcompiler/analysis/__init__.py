"""Facts about programs that no pass needs, but people, tuners and the pipeline's checks do."""

from dlcompiler.analysis.dependences import Dependence, dependences
from dlcompiler.analysis.races import LoopVerdict, RaceReport, analyze_races
from dlcompiler.analysis.work import Work, work_of

__all__ = [
    "Dependence",
    "LoopVerdict",
    "RaceReport",
    "Work",
    "analyze_races",
    "dependences",
    "work_of",
]
