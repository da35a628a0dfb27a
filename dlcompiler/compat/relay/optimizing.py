"""The passes of `relay.build`, and parameters that become constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dlcompiler import graph
from dlcompiler.compat.arrays import NDArray
from dlcompiler.compat.relay.modules import IRModule, module_of
from dlcompiler.compat.relay.passes import FuseOps, Pass, PassInfo, Sequential
from dlcompiler.compat.targets import resolve
from dlcompiler.graph.builders import bind
from dlcompiler.graph.passes.pipeline import PASSES

CLASSIC_NAMES: Mapping[str, str] = {
    "infer_types": "InferType",
    "eliminate_dead_code": "DeadCodeElimination",
    "simplify_inference": "SimplifyInference",
    "canonicalize_ops": "CanonicalizeOps",
    "fold_constants": "FoldConstant",
    "eliminate_common_subexpressions": "EliminateCommonSubexpr",
    "combine_parallel nn.conv2d": "CombineParallelConv2d",
    "combine_parallel nn.dense": "CombineParallelDense",
    "combine_parallel nn.batch_matmul": "CombineParallelBatchMatmul",
    "simplify_expr": "SimplifyExpr",
    "fold_scale_axis": "FoldScaleAxis",
    "fuse_ops": "FuseOps",
}
"""Name of a pass -> its name in Relay."""

Params = Mapping[str, Any]


def bound(module: graph.Module, params: Params | None) -> graph.Module:
    """Return a module with parameters of ``main`` as constants; unknown names are left out."""
    known = {param.name for param in module.main.params}
    values = {name: plain(value) for name, value in (params or {}).items() if name in known}
    return bind(module, values) if values else module


def bind_params_by_name(func: graph.Function, params: Params) -> graph.Function:
    """Return a function with some parameters as constants, chosen by their names."""
    return bound(graph.Module.from_expr(func), params).main


def plain(value: Any) -> Any:
    """Return an array of TVM, or what can be one, as an array of NumPy."""
    return value.data if isinstance(value, NDArray) else np.asarray(value)


def optimize(mod: Any, target: Any = None, params: Params | None = None) -> tuple[IRModule, Params]:
    """Run the passes of `build` on a module, without fusion.

    Parameters
    ----------
    mod : IRModule or Function
        The model.
    target
        Accepted: no pass depends on it.
    params : mapping, optional
        Arrays for parameters of ``main``.

    Returns
    -------
    tuple
        The module, and an empty dict: the parameters are its constants.
    """
    resolve(target)
    return build_sequence(is_fused=False)(bound(module_of(mod, "relay.optimize"), params)), {}


def build_sequence(is_fused: bool) -> Sequential:
    """Return the passes of `build`.

    Parameters
    ----------
    is_fused : bool
        Whether fusion is the last.
    """
    steps = [
        FuseOps() if step.name == "fuse_ops"
        else Pass(PassInfo(CLASSIC_NAMES.get(step.name, step.name), step.level), step.run)
        for step in PASSES
        if is_fused or step.name != "fuse_ops"
    ]  # fmt: skip
    return Sequential(steps, name="relay.build")
