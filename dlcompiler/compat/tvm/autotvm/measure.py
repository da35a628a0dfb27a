"""Classic TVM's ``tvm.autotvm.measure``."""

from dlcompiler.compat.autotvm.measuring import (
    LocalBuilder,
    LocalRunner,
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
    measure_option,
)
from dlcompiler.compat.missing import reporter

__getattr__ = reporter(__name__)
__all__ = [
    "LocalBuilder",
    "LocalRunner",
    "MeasureErrorNo",
    "MeasureInput",
    "MeasureResult",
    "measure_option",
]
