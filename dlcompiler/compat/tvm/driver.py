"""Classic TVM's ``tvm.driver``: `build` and `lower`."""

from dlcompiler.compat.building import build, lower
from dlcompiler.compat.missing import reporter

__getattr__ = reporter(__name__)
__all__ = ["build", "lower"]
