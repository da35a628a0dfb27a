"""Classic TVM's ``tvm.autotvm.task.dispatcher``."""

from dlcompiler.compat.autotvm.applying import ApplyConfig, DispatchContext, FallbackContext
from dlcompiler.compat.autotvm.history import ApplyHistoryBest
from dlcompiler.compat.missing import reporter

__getattr__ = reporter(__name__)
__all__ = ["ApplyConfig", "ApplyHistoryBest", "DispatchContext", "FallbackContext"]
