"""Graphs: models as typed expressions, and passes that give their reasons.

::

    from dlcompiler import graph
    from dlcompiler.graph import op

    x = graph.var("x", (1, 64))
    w = graph.constant(numpy.ones((10, 64), "float32"))
    module = graph.Module.from_expr(op.nn.relu(op.nn.dense(x, w, name="fc"), name="relu"))
    print(graph.module_text(module))
    graph.evaluate(module, x=numpy.zeros((1, 64), "float32"))
    kernels = graph.optimize(module)
    kernels.decisions(about="relu")  # why it was fused
    model = graph.build(module)  # one loaded module
    model(numpy.zeros((1, 64), "float32"))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dlcompiler.graph import op as op
from dlcompiler.graph.decisions import Decision, Effect, Wish, decisions_json
from dlcompiler.graph.execution import (
    CModel,
    CompiledModel,
    DeviceModel,
    KernelTime,
    LoadedModel,
    ModelComparison,
    ModelTask,
    Profile,
    RunnableModel,
    Transfer,
    ValuePair,
    build,
    compare,
    load_model,
    tasks,
)
from dlcompiler.graph.frontends import (
    from_coreml,
    from_darknet,
    from_mxnet,
    from_onnx,
    from_tflite,
    from_torch,
)
from dlcompiler.graph.inference import Types, infer_types, type_of, types_of
from dlcompiler.graph.interpreter import evaluate
from dlcompiler.graph.ir import (
    ANY,
    Call,
    Constant,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    If,
    Let,
    Module,
    Span,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    as_expr,
    modules_equal,
    structural_equal,
    structural_hash,
)
from dlcompiler.graph.ir.arrays import array_of
from dlcompiler.graph.memory import MemoryPlan, plan_memory
from dlcompiler.graph.operators import REGISTRY, GraphOperator, Pattern
from dlcompiler.graph.passes.pipeline import optimize
from dlcompiler.graph.quantization import (
    LayerError,
    Quantized,
    Top1,
    compare_top1,
    quantize,
)
from dlcompiler.graph.text import (
    expr_text,
    from_json,
    module_text,
    parse,
    parse_expr,
    to_json,
)
from dlcompiler.graph.wishes import fuse, keep_apart

__all__ = [
    "ANY",
    "REGISTRY",
    "CModel",
    "Call",
    "CompiledModel",
    "Constant",
    "Decision",
    "DeviceModel",
    "Effect",
    "Expr",
    "FuncType",
    "Function",
    "GlobalVar",
    "GraphOperator",
    "If",
    "KernelTime",
    "LayerError",
    "Let",
    "LoadedModel",
    "MemoryPlan",
    "ModelComparison",
    "ModelTask",
    "Module",
    "Pattern",
    "Profile",
    "Quantized",
    "RunnableModel",
    "Span",
    "TensorType",
    "Top1",
    "Transfer",
    "Tuple",
    "TupleGetItem",
    "TupleType",
    "Type",
    "Types",
    "ValuePair",
    "Var",
    "Wish",
    "as_expr",
    "build",
    "compare",
    "compare_top1",
    "constant",
    "decisions_json",
    "evaluate",
    "expr_text",
    "from_coreml",
    "from_darknet",
    "from_json",
    "from_mxnet",
    "from_onnx",
    "from_tflite",
    "from_torch",
    "fuse",
    "infer_types",
    "keep_apart",
    "load_model",
    "module_text",
    "modules_equal",
    "optimize",
    "parse",
    "parse_expr",
    "plan_memory",
    "quantize",
    "structural_equal",
    "structural_hash",
    "tasks",
    "to_json",
    "type_of",
    "types_of",
    "var",
]


def var(name: str, shape: Sequence[Any] | None = None, dtype: str = "float32") -> Var:
    """Return a variable.

    Parameters
    ----------
    name : str
        Its name.
    shape : sequence, optional
        Extents of its dimensions; `ANY` for one that only a run decides. None: inference finds the
        type.
    dtype : str
        Its dtype.
    """
    return Var(name, None if shape is None else TensorType(tuple(shape), dtype))


def constant(value: Any, dtype: str | None = None) -> Constant:
    """Return a tensor that is part of a graph.

    Parameters
    ----------
    value : array, number or list
        Its elements.
    dtype : str, optional
        Its dtype; by default that of the array, float32 for Python's floats, int32 for its ints,
        or int64 if they need it.

    Raises
    ------
    GraphError
        If the value is no array, or the dtype does not hold an element.
    """
    if dtype is not None or isinstance(value, np.ndarray | np.generic):
        return Constant(array_of(value, dtype))
    array = array_of(value)
    if array.dtype == np.int64 and (array == array.astype("int32")).all():
        return Constant(array.astype("int32"))
    return Constant(array_of(value, "float32") if array.dtype == np.float64 else array)
