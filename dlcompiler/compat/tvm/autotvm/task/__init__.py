"""Classic TVM's ``tvm.autotvm.task``."""

from dlcompiler.compat.autotvm.applying import (
    ApplyConfig,
    DispatchContext,
    FallbackContext,
    get_config,
)
from dlcompiler.compat.autotvm.configs import ConfigEntity, ConfigSpace, FallbackConfigEntity
from dlcompiler.compat.autotvm.history import ApplyHistoryBest
from dlcompiler.compat.autotvm.tasks import Task, create, template
from dlcompiler.compat.missing import reporter
from dlcompiler.compat.tvm.autotvm.task import dispatcher, space

__getattr__ = reporter(__name__)
__all__ = [
    "ApplyConfig",
    "ApplyHistoryBest",
    "ConfigEntity",
    "ConfigSpace",
    "DispatchContext",
    "FallbackConfigEntity",
    "FallbackContext",
    "Task",
    "create",
    "dispatcher",
    "get_config",
    "space",
    "template",
]
