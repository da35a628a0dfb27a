"""Classic TVM's ``tvm.relay.transform``."""

from dlcompiler.compat.contexts import PassContext, build_config
from dlcompiler.compat.missing import reporter
from dlcompiler.compat.relay.passes import (
    AlterOpLayout,
    BackwardFoldScaleAxis,
    CanonicalizeOps,
    CombineParallelBatchMatmul,
    CombineParallelConv2D,
    CombineParallelDense,
    DeadCodeElimination,
    EliminateCommonSubexpr,
    FastMath,
    FoldConstant,
    FoldScaleAxis,
    ForwardFoldScaleAxis,
    FuseOps,
    InferType,
    Legalize,
    RemoveUnusedFunctions,
    Sequential,
    SimplifyExpr,
    SimplifyInference,
    function_pass,
    module_pass,
)

__getattr__ = reporter(__name__)
__all__ = [
    "AlterOpLayout",
    "BackwardFoldScaleAxis",
    "CanonicalizeOps",
    "CombineParallelBatchMatmul",
    "CombineParallelConv2D",
    "CombineParallelDense",
    "DeadCodeElimination",
    "EliminateCommonSubexpr",
    "FastMath",
    "FoldConstant",
    "FoldScaleAxis",
    "ForwardFoldScaleAxis",
    "FuseOps",
    "InferType",
    "Legalize",
    "PassContext",
    "RemoveUnusedFunctions",
    "Sequential",
    "SimplifyExpr",
    "SimplifyInference",
    "build_config",
    "function_pass",
    "module_pass",
]
