"""Layouts of images and weights: chosen by a rule for each operator, or by a search."""

from dlcompiler.graph.passes.layouts.convert import convert_layout
from dlcompiler.graph.passes.layouts.costs import LayoutCosts, predicted_costs
from dlcompiler.graph.passes.layouts.search import search_layouts

__all__ = ["LayoutCosts", "convert_layout", "predicted_costs", "search_layouts"]
