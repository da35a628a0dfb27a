"""Classic TVM's ``tvm.transform``: sequences of passes, and their options."""

from dlcompiler.compat.contexts import PassContext
from dlcompiler.compat.missing import reporter
from dlcompiler.compat.relay.passes import (
    Pass,
    PassInfo,
    PrintIR,
    Sequential,
    module_pass,
)

__getattr__ = reporter(__name__)
__all__ = [
    "Pass",
    "PassContext",
    "PassInfo",
    "PrintIR",
    "Sequential",
    "module_pass",
]
