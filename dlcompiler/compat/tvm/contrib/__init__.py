"""Classic TVM's ``tvm.contrib``."""

from dlcompiler.compat.missing import reporter
from dlcompiler.compat.tvm.contrib import cblas, cc, nvcc, utils

util = utils
"""The older name."""

__getattr__ = reporter(__name__)
__all__ = ["cblas", "cc", "nvcc", "util", "utils"]
