"""Cost models, which predict how fast a config is, and the features that they use.

`make_model` makes one by its name. `FeatureSource`s describe points by numbers: `KnobFeatures` by
the knobs alone, `dlcompiler.autotune.features` by what the schedule does.
"""

from dlcompiler.autotune.models.base import CostModel, FeatureSource
from dlcompiler.autotune.models.cache import CachedFeatures
from dlcompiler.autotune.models.compare import Difference, compare_predictions
from dlcompiler.autotune.models.knobs import KnobFeatures
from dlcompiler.autotune.models.registry import LEARNERS, make_model

__all__ = [
    "LEARNERS",
    "CachedFeatures",
    "CostModel",
    "Difference",
    "FeatureSource",
    "KnobFeatures",
    "compare_predictions",
    "make_model",
]
