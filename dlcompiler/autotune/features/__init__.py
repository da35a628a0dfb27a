"""Features of configs, for whole spaces at once.

`SpaceFeatures` describes every config of a space by numbers, without making its schedule: the
template is run once for each way through it (`tracing`), with knobs that remember what they are
used for (`numbers`); extents, strides and what buffers hold follow as formulas (`geometry`), which
are evaluated for thousands of configs (`evaluation`). `features_of` says the same of one schedule.
"""

from dlcompiler.autotune.features.space_features import (
    KINDS,
    SpaceFeatures,
    features_of,
    template_features,
)

__all__ = ["KINDS", "SpaceFeatures", "features_of", "template_features"]
