"""Classic TVM's ``tvm.te.hybrid``: Python functions that define stages."""

from dlcompiler.compat.missing import reporter
from dlcompiler.te.hybrid import script

__getattr__ = reporter(__name__)
__all__ = ["script"]
