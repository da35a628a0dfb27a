"""Pictures of a tuning run: best so far, cost model, search space, trials, and time spent.

`watched` takes a snapshot of a run; every picture is a pure function of that snapshot.
"""

from dlcompiler.views.tuning.accuracy import correlation
from dlcompiler.views.tuning.best_so_far import best_so_far
from dlcompiler.views.tuning.chart import nice_ceiling
from dlcompiler.views.tuning.compare import compare_tuners
from dlcompiler.views.tuning.coordinates import coordinates
from dlcompiler.views.tuning.explained import contributions, importance, why_before
from dlcompiler.views.tuning.headline import Headline, headline
from dlcompiler.views.tuning.knob_map import knob_map
from dlcompiler.views.tuning.page import tuning_html
from dlcompiler.views.tuning.plane_map import plane_map
from dlcompiler.views.tuning.predicted import predicted_measured
from dlcompiler.views.tuning.space_points import Ground, ground
from dlcompiler.views.tuning.time_spent import time_spent
from dlcompiler.views.tuning.trials_table import Order, TrialsTable, trials_table
from dlcompiler.views.tuning.watched import TrialRow, Watched, watched

__all__ = [
    "Ground",
    "Headline",
    "Order",
    "TrialRow",
    "TrialsTable",
    "Watched",
    "best_so_far",
    "compare_tuners",
    "contributions",
    "coordinates",
    "correlation",
    "ground",
    "headline",
    "importance",
    "knob_map",
    "nice_ceiling",
    "plane_map",
    "predicted_measured",
    "time_spent",
    "trials_table",
    "tuning_html",
    "watched",
    "why_before",
]
