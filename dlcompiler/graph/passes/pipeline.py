"""The passes in their order: from a model as it is written to kernels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from dlcompiler.graph.inference import infer_types
from dlcompiler.graph.ir import Module
from dlcompiler.graph.passes.base import GraphPass, Observer, PassContext, run_passes
from dlcompiler.graph.passes.canonicalize_ops import canonicalize_ops
from dlcompiler.graph.passes.combine_parallel import combine_parallel
from dlcompiler.graph.passes.decompose import decompose_ops
from dlcompiler.graph.passes.eliminate_common_subexpressions import (
    eliminate_common_subexpressions,
)
from dlcompiler.graph.passes.eliminate_dead_code import eliminate_dead_code
from dlcompiler.graph.passes.fold_constants import fold_constants
from dlcompiler.graph.passes.fold_scale_axis import fold_scale_axis
from dlcompiler.graph.passes.fusion import fuse_ops
from dlcompiler.graph.passes.quantized import compute_in_integers, lay_out_integers
from dlcompiler.graph.passes.simplify_expr import simplify_expr
from dlcompiler.graph.passes.simplify_inference import simplify_inference
from dlcompiler.graph.passes.sink_reshapes import sink_reshapes
from dlcompiler.graph.passes.store_weights import store_weights
from dlcompiler.graph.passes.widen_sums import widen_sums

FOLD = GraphPass("fold_constants", fold_constants, 2)

PASSES: tuple[GraphPass, ...] = (
    GraphPass("infer_types", infer_types),
    GraphPass("eliminate_dead_code", eliminate_dead_code, 1),
    GraphPass("simplify_inference", simplify_inference),
    # Before constants are folded: weights would be floats.
    GraphPass("compute_in_integers", compute_in_integers, 2),
    GraphPass("lay_out_integers", lay_out_integers, 3),
    GraphPass("canonicalize_ops", canonicalize_ops, 3),
    GraphPass("decompose_ops", decompose_ops, 1),
    GraphPass("sink_reshapes", sink_reshapes, 1),
    # Before the calls are compared: equal weights are then one constant.
    FOLD,
    GraphPass("eliminate_common_subexpressions", eliminate_common_subexpressions, 3),
    *(
        GraphPass(f"combine_parallel {name}", partial(combine_parallel, operator=name), 4)
        for name in ("nn.conv2d", "nn.dense", "nn.batch_matmul")
    ),
    GraphPass("simplify_expr", simplify_expr),
    # Factors must stand beside convolutions: sums and padding were simplified before.
    GraphPass("fold_scale_axis", fold_scale_axis, 3),
    # Behind a cast, `fold_scale_axis` would not find a convolution.
    GraphPass("widen_sums", widen_sums),
    FOLD,
    GraphPass("simplify_expr", simplify_expr),
    FOLD,
    GraphPass("fuse_ops", fuse_ops),
)
"""All passes. The levels are those of Relay."""
STORE = GraphPass("store_weights", store_weights)
"""Runs in kernels, where no pass folds the conversions into weights again; if it is asked for."""


def optimize(
    module: Module, opt_level: int = 3, *, context: PassContext | None = None,
    observers: Sequence[Observer] = (),
) -> Module:  # fmt: skip
    """Run the passes on a module: the result consists of kernels.

    Parameters
    ----------
    module : Module
        A model.
    opt_level : int
        Passes of a higher level do not run, as in Relay; from 0 to 4; [1].
    context : PassContext, optional
        More settings; it takes the place of `opt_level`.
    observers : sequence
        Called after each pass with a `GraphChange`; ``dlc.show_changes`` prints it.

    Returns
    -------
    Module
        Its log has the decisions of all passes.
    """
    context = context or PassContext(opt_level)
    passes = (*PASSES, STORE) if context.config.get(STORE.name) else PASSES
    return run_passes(module, passes, context, observers)
