"""Classic TVM's ``tvm.ir``."""

from dlcompiler.compat.building import IRModule
from dlcompiler.compat.missing import reporter
from dlcompiler.compat.tvm import transform
from dlcompiler.ir import structural_equal

__getattr__ = reporter(__name__)
__all__ = ["IRModule", "structural_equal", "transform"]
