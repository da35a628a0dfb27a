"""Classic TVM's ``tvm.transform``."""

from dlcompiler.compat.contexts import PassContext
from dlcompiler.compat.missing import reporter

__getattr__ = reporter(__name__)
__all__ = ["PassContext"]
