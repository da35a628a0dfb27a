"""Classic TVM's module ``tvm``: ``from dlcompiler.compat import tvm``."""

from dlcompiler.compat.building import build, lower
from dlcompiler.compat.contexts import build_config
from dlcompiler.compat.devices import (
    cl,
    cpu,
    cuda,
    device,
    ext_dev,
    gpu,
    metal,
    opencl,
    rocm,
    vulkan,
)
from dlcompiler.compat.functions import get_global_func, register_func
from dlcompiler.compat.missing import reporter, watch_imports
from dlcompiler.compat.modules import Module
from dlcompiler.compat.relay.modules import IRModule
from dlcompiler.compat.tvm import (
    autotvm,
    contrib,
    driver,
    error,
    ir,
    nd,
    parser,
    relay,
    rpc,
    runtime,
    target,
    te,
    testing,
    tir,
    topi,
    transform,
)
from dlcompiler.errors import DLCompilerError as TVMError

watch_imports()

__version__ = "0.8.0"
"""Classic version whose names are followed; scripts compare it."""

context = device
"""The older name of `device`."""
ndarray = nd
module = runtime
"""The older place of `load`."""
expr = tir
convert = runtime.convert
schedule = te.schedule

_FROM_TIR = ("call_extern", "call_packed", "call_pure_extern", "decl_buffer", "ir_builder")
_FROM_TE = (
    *("abs", "all", "any", "ceil", "comm_reducer", "compute", "const", "create_schedule", "exp"),
    *(
        "extern",
        "hybrid",
        "floor",
        "floordiv",
        "floormod",
        "if_then_else",
        "indexdiv",
        "indexmod",
        "log",
    ),
    *("max", "max_value", "min", "min_value", "placeholder", "power", "reduce_axis", "round"),
    *("select", "sigmoid", "size_var", "sqrt", "sum", "tanh", "thread_axis", "trunc", "truncdiv"),
    *("truncmod", "var"),
)
"""Names that version 0.6 had here, and later versions have in `te` or `tir`."""

_report = reporter(__name__)


def __getattr__(name: str) -> object:
    if name in _FROM_TIR:
        return getattr(tir, name)
    return getattr(te, name) if name in _FROM_TE else _report(name)


__all__ = [
    "IRModule",
    "Module",
    "TVMError",
    "autotvm",
    "build",
    "build_config",
    "cl",
    "context",
    "contrib",
    "convert",
    "cpu",
    "cuda",
    "device",
    "driver",
    "error",
    "ext_dev",
    "get_global_func",
    "gpu",
    "ir",
    "lower",
    "metal",
    "module",
    "nd",
    "ndarray",
    "opencl",
    "parser",
    "register_func",
    "relay",
    "rocm",
    "rpc",
    "runtime",
    "target",
    "te",
    "testing",
    "tir",
    "topi",
    "transform",
    "vulkan",
]
