"""Classic TVM's ``tvm.autotvm.record``."""

from dlcompiler.compat.autotvm.recording import (
    AUTOTVM_LOG_VERSION,
    decode,
    encode,
    load_from_file,
    pick_best,
)
from dlcompiler.compat.missing import reporter

__getattr__ = reporter(__name__)
__all__ = ["AUTOTVM_LOG_VERSION", "decode", "encode", "load_from_file", "pick_best"]
