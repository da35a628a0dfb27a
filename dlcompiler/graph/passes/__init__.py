"""Passes on graphs: pure functions from a module to a module; what they decide is in its log."""

from dlcompiler.graph.passes.base import GraphPass, PassContext, run_passes
from dlcompiler.graph.passes.canonicalize_ops import canonicalize_ops
from dlcompiler.graph.passes.combine_parallel import combine_parallel
from dlcompiler.graph.passes.decompose import decompose_ops
from dlcompiler.graph.passes.devices import (
    merge_composite,
    offload,
    partition_for_device,
    place_on_devices,
)
from dlcompiler.graph.passes.eliminate_common_subexpressions import (
    eliminate_common_subexpressions,
)
from dlcompiler.graph.passes.eliminate_dead_code import eliminate_dead_code
from dlcompiler.graph.passes.fold_constants import fold_constants
from dlcompiler.graph.passes.fold_scale_axis import fold_scale_axis
from dlcompiler.graph.passes.fusion import FusionOptions, fuse_ops
from dlcompiler.graph.passes.layouts import convert_layout, search_layouts
from dlcompiler.graph.passes.quantized import compute_in_integers, lay_out_integers
from dlcompiler.graph.passes.simplify_expr import simplify_expr
from dlcompiler.graph.passes.simplify_inference import simplify_inference
from dlcompiler.graph.passes.sink_reshapes import sink_reshapes
from dlcompiler.graph.passes.store_weights import store_weights
from dlcompiler.graph.passes.widen_sums import widen_sums

__all__ = [
    "FusionOptions",
    "GraphPass",
    "PassContext",
    "canonicalize_ops",
    "combine_parallel",
    "compute_in_integers",
    "convert_layout",
    "decompose_ops",
    "eliminate_common_subexpressions",
    "eliminate_dead_code",
    "fold_constants",
    "fold_scale_axis",
    "fuse_ops",
    "lay_out_integers",
    "merge_composite",
    "offload",
    "partition_for_device",
    "place_on_devices",
    "run_passes",
    "search_layouts",
    "simplify_expr",
    "simplify_inference",
    "sink_reshapes",
    "store_weights",
    "widen_sums",
]
