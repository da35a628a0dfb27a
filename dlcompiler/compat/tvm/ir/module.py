"""Classic TVM's ``tvm.ir.module``."""

from dlcompiler.compat.missing import reporter
from dlcompiler.compat.relay.modules import IRModule

__getattr__ = reporter(__name__)
__all__ = [
    "IRModule",
]
