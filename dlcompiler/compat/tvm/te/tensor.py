"""Classic TVM's ``tvm.te.tensor``: the classes of tensors and operations."""

from dlcompiler.compat.missing import reporter
from dlcompiler.te import ComputeOp, Operation, PlaceholderOp, Tensor

__getattr__ = reporter(__name__)
__all__ = ["ComputeOp", "Operation", "PlaceholderOp", "Tensor"]
