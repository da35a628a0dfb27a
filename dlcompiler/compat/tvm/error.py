"""Classic TVM's ``tvm.error``."""

from dlcompiler.compat.missing import reporter
from dlcompiler.errors import DLCompilerError as TVMError
from dlcompiler.errors import InternalError

__getattr__ = reporter(__name__)
__all__ = ["InternalError", "TVMError"]
