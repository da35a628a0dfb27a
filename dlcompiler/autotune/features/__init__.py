"""Compute features of all configs of a space at once.

`SpaceFeatures` computes the features of all configs of a space without making their schedules. The
template runs once for each sequence of its decisions (`tracing`), with knobs that record the
arithmetic done with them (`numbers`). Extents, strides and buffer sizes follow as formulas of knobs
(`geometry`), which are evaluated for thousands of configs at once (`evaluation`). `features_of`
computes the same features from one schedule.

For a GPU, `SpaceCounters` counts what the warps of each config do (`space_counters`), and
`GPUFeatures` makes features of these counters.
"""

from dlcompiler.autotune.features.space_features import (
    KINDS,
    SpaceFeatures,
    features_of,
    template_features,
)

__all__ = ["KINDS", "SpaceFeatures", "features_of", "template_features"]
