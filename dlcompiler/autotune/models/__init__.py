"""Cost models: predict how fast a config is, from those that were measured."""

from dlcompiler.autotune.models.base import CostModel, FeatureSource, Indices, Matrix

__all__ = ["CostModel", "FeatureSource", "Indices", "Matrix"]
