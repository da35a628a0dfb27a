"""Classic TVM's ``tvm.relay.build_module``."""

from dlcompiler.compat.contexts import build_config
from dlcompiler.compat.missing import reporter
from dlcompiler.compat.relay.executors import build
from dlcompiler.compat.relay.interpreters import create_executor
from dlcompiler.compat.relay.optimizing import bind_params_by_name, optimize

__getattr__ = reporter(__name__)
__all__ = ["bind_params_by_name", "build", "build_config", "create_executor", "optimize"]
