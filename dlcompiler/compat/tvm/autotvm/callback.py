"""Classic TVM's ``tvm.autotvm.callback``."""

from dlcompiler.compat.autotvm.callbacks import log_to_file, progress_bar
from dlcompiler.compat.missing import reporter

__getattr__ = reporter(__name__)
__all__ = ["log_to_file", "progress_bar"]
