"""Classic TVM's ``tvm.tir.ir_builder``: loop IR built statement by statement."""

from dlcompiler.compat.missing import Named, reporter
from dlcompiler.ir import BufferView, Builder

BufferVar = BufferView


class IRBuilder(Builder, Named):
    """`dlcompiler.ir.Builder` under its classic name."""

    classic = "tvm.tir.ir_builder.IRBuilder"


def create() -> IRBuilder:
    """Return an empty builder."""
    return IRBuilder()


__getattr__ = reporter(__name__)
__all__ = ["BufferVar", "IRBuilder", "create"]
