"""Classic TVM's ``tvm.relay.expr_functor``."""

from dlcompiler.compat.missing import reporter
from dlcompiler.compat.relay.visitors import (
    ExprFunctor,
    ExprMutator,
    ExprVisitor,
)

__getattr__ = reporter(__name__)
__all__ = [
    "ExprFunctor",
    "ExprMutator",
    "ExprVisitor",
]
