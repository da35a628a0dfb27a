"""Analyses of programs for views, tuners and the pipeline's checks; passes do not use them."""

from dlcompiler.analysis.dependences import Dependence, dependences, dependences_of
from dlcompiler.analysis.distance_vectors import DistanceVector
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
    "DistanceVector",
    "InitialisationReport",
    "LoopVerdict",
    "RaceReport",
    "Work",
    "analyze_initialisation",
    "analyze_races",
    "dependences",
    "dependences_of",
    "work_of",
]
