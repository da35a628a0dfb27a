"""Classic TVM's ``tvm.te.hybrid``: scripts that are stages."""

from dlcompiler.compat.missing import reporter
from dlcompiler.te.hybrid import script

__getattr__ = reporter(__name__)
__all__ = ["script"]
