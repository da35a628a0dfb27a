"""Classic TVM's ``tvm.tir.ir_builder``: loop IR built statement by statement."""

from typing import Any

from dlcompiler.compat.missing import Named, reporter
from dlcompiler.compat.warp_matrices import MatrixCall, MatrixCalls
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import BufferView, Builder, Seq

BufferVar = BufferView


class IRBuilder(Builder, Named):
    """`dlcompiler.ir.Builder` under its classic name, which also collects `MatrixCall`."""

    classic = "tvm.tir.ir_builder.IRBuilder"

    def __init__(self) -> None:
        super().__init__()
        self._calls: list[MatrixCall] = []

    def emit(self, stmt: Any) -> None:
        """Append a statement, or a call for tensor cores."""
        if isinstance(stmt, MatrixCall):
            self._calls.append(stmt)
        else:
            super().emit(stmt)

    def get(self) -> Any:
        """Return all statements.

        Raises
        ------
        ExpressionError
            If there are calls for tensor cores among other statements, or in loops.
        """
        statements = super().get()
        if not self._calls:
            return statements
        if not (isinstance(statements, Seq) and not statements.statements):
            raise ExpressionError(
                "get", "calls for tensor cores stand among other statements",
                got=", ".join(map(str, self._calls)),
                hint="an intrinsic is one such call: tensorize a smaller tile",
            )  # fmt: skip
        return MatrixCalls(tuple(self._calls))


def create() -> IRBuilder:
    """Return an empty builder."""
    return IRBuilder()


__getattr__ = reporter(__name__)
__all__ = ["BufferVar", "IRBuilder", "create"]
