"""Classic TVM's ``tvm.contrib``."""

from dlcompiler.compat.missing import reporter
from dlcompiler.compat.tvm.contrib import cblas, cc, graph_executor, graph_runtime, nvcc, utils

util = utils
"""The older name."""

__getattr__ = reporter(__name__)
__all__ = ["cblas", "cc", "graph_executor", "graph_runtime", "nvcc", "util", "utils"]
