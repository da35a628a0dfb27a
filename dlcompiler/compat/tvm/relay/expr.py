"""Classic TVM's ``tvm.relay.expr``."""

from dlcompiler.compat.missing import reporter
from dlcompiler.compat.relay.expressions import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Tuple,
    TupleGetItem,
    TupleWrapper,
    Var,
    const,
    var,
)
from dlcompiler.compat.relay.visitors import ExprMutator

__getattr__ = reporter(__name__)
__all__ = [
    "Call",
    "Constant",
    "Expr",
    "ExprMutator",
    "Function",
    "GlobalVar",
    "If",
    "Let",
    "Tuple",
    "TupleGetItem",
    "TupleWrapper",
    "Var",
    "const",
    "var",
]
