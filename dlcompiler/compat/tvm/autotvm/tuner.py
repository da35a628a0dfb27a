"""Classic TVM's ``tvm.autotvm.tuner``."""

from dlcompiler.compat.autotvm import callbacks as callback
from dlcompiler.compat.autotvm.tuners import (
    GATuner,
    GridSearchTuner,
    RandomTuner,
    Tuner,
    XGBTuner,
)
from dlcompiler.compat.missing import reporter

__getattr__ = reporter(__name__)
__all__ = ["GATuner", "GridSearchTuner", "RandomTuner", "Tuner", "XGBTuner", "callback"]
