"""Classic TVM's ``tvm.autotvm``: templates, tasks, tuners, logs."""

from dlcompiler.compat.autotvm.applying import ApplyConfig, FallbackContext, get_config
from dlcompiler.compat.autotvm.configs import ConfigEntity, ConfigSpace
from dlcompiler.compat.autotvm.history import ApplyHistoryBest
from dlcompiler.compat.autotvm.measuring import (
    LocalBuilder,
    LocalRunner,
    MeasureInput,
    MeasureResult,
    measure_option,
)
from dlcompiler.compat.autotvm.tasks import template
from dlcompiler.compat.missing import reporter
from dlcompiler.compat.tvm.autotvm import callback, measure, record, task, tuner

apply_history_best = ApplyHistoryBest
"""A context in which templates get the best configs of a log."""

__getattr__ = reporter(__name__)
__all__ = [
    "ApplyConfig",
    "ApplyHistoryBest",
    "ConfigEntity",
    "ConfigSpace",
    "FallbackContext",
    "LocalBuilder",
    "LocalRunner",
    "MeasureInput",
    "MeasureResult",
    "apply_history_best",
    "callback",
    "get_config",
    "measure",
    "measure_option",
    "record",
    "task",
    "template",
    "tuner",
]
