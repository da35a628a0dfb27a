"""Classic TVM's ``tvm.autotvm.task.space``."""

from dlcompiler.compat.autotvm.configs import ConfigEntity, ConfigSpace, FallbackConfigEntity
from dlcompiler.compat.missing import reporter
from dlcompiler.space import AnnotateEntity, OtherOptionEntity, ReorderEntity, SplitEntity

__getattr__ = reporter(__name__)
__all__ = [
    "AnnotateEntity",
    "ConfigEntity",
    "ConfigSpace",
    "FallbackConfigEntity",
    "OtherOptionEntity",
    "ReorderEntity",
    "SplitEntity",
]
