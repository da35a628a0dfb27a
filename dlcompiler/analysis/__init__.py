"""Analyses of programs for views, tuners and the pipeline's checks; passes do not use them."""

from dlcompiler.analysis.dependences import Dependence, dependences
from dlcompiler.analysis.initialisation import (
    BufferVerdict,
    InitialisationReport,
    analyze_initialisation,
)
from dlcompiler.analysis.races import LoopVerdict, RaceReport, analyze_races
from dlcompiler.analysis.work import Work, work_of

__all__ = [
    "BufferVerdict",
    "Dependence",
    "InitialisationReport",
    "LoopVerdict",
    "RaceReport",
    "Work",
    "analyze_initialisation",
    "analyze_races",
    "dependences",
    "work_of",
]
