"""Classic TVM's ``tvm.relay``: graphs of operators, passes on them, and what runs them."""

from dlcompiler.compat.contexts import build_config
from dlcompiler.compat.missing import LATER, classic_name, refuse_name
from dlcompiler.compat.relay.executors import build
from dlcompiler.compat.relay.expressions import (
    Call,
    Constant,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    If,
    Let,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    TupleWrapper,
    Var,
    any_extent,
    const,
    scalar_type,
    var,
)
from dlcompiler.compat.relay.interpreters import create_executor
from dlcompiler.compat.relay.modules import IRModule
from dlcompiler.compat.relay.operators import finder
from dlcompiler.compat.relay.optimizing import optimize
from dlcompiler.compat.relay.params import load_param_dict, save_param_dict
from dlcompiler.compat.relay.visitors import ExprFunctor, ExprMutator, ExprVisitor
from dlcompiler.compat.tvm.parser import fromtext
from dlcompiler.compat.tvm.relay import (
    analysis,
    annotation,
    build_module,
    dataflow_pattern,
    expr,
    expr_functor,
    image,
    nn,
    op,
    testing,
    transform,
    ty,
)

Any = any_extent
"""The extent that only a run decides."""
Module = IRModule
"""The older name of `tvm.IRModule`."""

_operator = finder(classic_name(__name__))


def __getattr__(name: str) -> object:
    if f"tvm.relay.{name}" in LATER:
        refuse_name(f"tvm.relay.{name}")
    return _operator(name)


__all__ = [
    "Any",
    "Call",
    "Constant",
    "Expr",
    "ExprFunctor",
    "ExprMutator",
    "ExprVisitor",
    "FuncType",
    "Function",
    "GlobalVar",
    "If",
    "Let",
    "Module",
    "TensorType",
    "Tuple",
    "TupleGetItem",
    "TupleType",
    "TupleWrapper",
    "Var",
    "analysis",
    "annotation",
    "build",
    "build_config",
    "build_module",
    "const",
    "create_executor",
    "dataflow_pattern",
    "expr",
    "expr_functor",
    "fromtext",
    "image",
    "load_param_dict",
    "nn",
    "op",
    "optimize",
    "save_param_dict",
    "scalar_type",
    "testing",
    "transform",
    "ty",
    "var",
]
