"""Classic TVM's ``tvm.ir``."""

from dlcompiler.compat.building import IRModule
from dlcompiler.compat.intrinsics import register_intrin_lowering, register_op_attr
from dlcompiler.compat.missing import reporter
from dlcompiler.compat.tvm import transform
from dlcompiler.ir import structural_equal

__getattr__ = reporter(__name__)
__all__ = [
    "IRModule",
    "register_intrin_lowering",
    "register_op_attr",
    "structural_equal",
    "transform",
]
