"""Classic TVM's ``tvm.ir``."""

from dlcompiler.compat.intrinsics import register_intrin_lowering, register_op_attr
from dlcompiler.compat.missing import reporter
from dlcompiler.compat.relay.analysis import (
    assert_structural_equal,
    structural_equal,
    structural_hash,
)
from dlcompiler.compat.relay.expressions import (
    FuncType,
    GlobalVar,
    Op,
    TensorType,
    TupleType,
)
from dlcompiler.compat.relay.modules import IRModule
from dlcompiler.compat.tvm import transform
from dlcompiler.compat.tvm.ir import instrument, module

__getattr__ = reporter(__name__)
__all__ = [
    "FuncType",
    "GlobalVar",
    "IRModule",
    "Op",
    "TensorType",
    "TupleType",
    "assert_structural_equal",
    "instrument",
    "module",
    "register_intrin_lowering",
    "register_op_attr",
    "structural_equal",
    "structural_hash",
    "transform",
]
