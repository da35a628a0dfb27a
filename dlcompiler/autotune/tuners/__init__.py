"""Tuners choose the points of a space to try next. `tuner` makes one by its name."""

from dlcompiler.autotune.proposal import Proposal, Tuner
from dlcompiler.autotune.tuners.base import BaseTuner, GridTuner, RandomTuner
from dlcompiler.autotune.tuners.candidates import Candidates
from dlcompiler.autotune.tuners.descent import DescentTuner
from dlcompiler.autotune.tuners.genetic import GeneticTuner
from dlcompiler.autotune.tuners.guided import ModelTuner, Strategy
from dlcompiler.autotune.tuners.registry import TUNERS, check_name, tuner

__all__ = [
    "TUNERS",
    "BaseTuner",
    "Candidates",
    "DescentTuner",
    "GeneticTuner",
    "GridTuner",
    "ModelTuner",
    "Proposal",
    "RandomTuner",
    "Strategy",
    "Tuner",
    "check_name",
    "tuner",
]
