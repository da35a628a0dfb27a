"""Classic TVM's ``tvm.relay.ty``."""

from dlcompiler.compat.missing import reporter
from dlcompiler.compat.relay.expressions import (
    FuncType,
    TensorType,
    TupleType,
    any_extent,
    scalar_type,
)

Any = any_extent

__getattr__ = reporter(__name__)
__all__ = [
    "Any",
    "FuncType",
    "TensorType",
    "TupleType",
    "any_extent",
    "scalar_type",
]
