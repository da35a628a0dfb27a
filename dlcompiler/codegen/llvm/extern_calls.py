"""Write calls of registered functions, by symbols that the runtime binds.

A Python function is called through `dlcompiler.runtime.callbacks`, and may fail like an assertion.
A C function gets pointers and numbers.
"""

from __future__ import annotations

from dlcompiler import dtypes
from dlcompiler.codegen.llvm import assertions
from dlcompiler.codegen.llvm.conversions import convert
from dlcompiler.codegen.llvm.expressions import Expressions
from dlcompiler.codegen.llvm.types import identifier, value_type
from dlcompiler.ir import Expr, ExternCall, Region, extent_expr
from dlcompiler.runtime.externs import EXTERN, PACKED


def call_c(scope: Expressions, call: ExternCall) -> None:
    """Write the call of a C function."""
    w = scope.w
    typed = [
        f"ptr {_start(scope, arg)}" if isinstance(arg, Region)
        else f"{value_type(arg.dtype)} {scope.value(arg)}"
        for arg in call.args
    ]  # fmt: skip
    types = ", ".join(operand.partition(" ")[0] for operand in typed)
    symbol = w.module.declare(identifier(EXTERN + call.name), "void", types)
    w.effect(f"call void ({types}) {symbol}({', '.join(typed)})")


def call_packed(scope: Expressions, call: ExternCall, status: str) -> str:
    """Write the call of a Python function.

    The block that runs if the call fails is left open; the caller must end it.

    Returns
    -------
    str
        The label of the block that continues after success.
    """
    w = scope.w
    values = [value for arg in call.args for value in _values(scope, arg)]
    array = f"%{w.name('arguments')}"
    w.prologue(f"{array} = alloca [{max(len(values), 1)} x i64], align 8")
    for position, (type_, operand) in enumerate(values):
        place = w.pure(f"getelementptr inbounds i64, ptr {array}, i64 {position}")
        w.effect(f"store {type_} {operand}, ptr {place}, align 8")
    kinds = " ".join(map(_kind, call.args))
    text = w.module.constant(
        f"kinds.{len(w.module.constants)}", f"[{len(kinds) + 1} x i8]", f'c"{kinds}\\00"'
    )
    symbol = w.module.declare(identifier(PACKED + call.name), "i64", "ptr, ptr, ptr")
    failed = w.value(f"call i64 {symbol}(ptr {text}, ptr {array}, ptr {status})")
    condition = w.value(f"icmp eq i64 {failed}, 0")
    return assertions.write(w, condition, status, f"{call.name} raised an exception")


def _start(scope: Expressions, region: Region) -> str:
    """Write the address of the first element of a region, which may be empty."""
    offset = scope.addresses.offset(region.buffer, region.indices)
    return scope.addresses.pointer(region.buffer, offset, in_bounds=False)


def _kind(arg: Expr) -> str:
    if isinstance(arg, Region):
        mode = "w" if arg.is_written else "r"
        return f"{mode}:{arg.dtype}:{len(arg.indices)}"
    return {"bool": "b", "float": "f"}.get(dtypes.family(arg.dtype), "i")


def _values(scope: Expressions, arg: Expr) -> list[tuple[str, str]]:
    """Return the type and the operand of each 8-byte value of an argument."""
    if isinstance(arg, Region):
        sizes = (*arg.extents, *map(extent_expr, arg.buffer.strides))
        return [("ptr", _start(scope, arg)), *(("i64", scope.value(size)) for size in sizes)]
    operand, w = scope.value(arg), scope.w
    match dtypes.family(arg.dtype):
        case "float":
            return [("double", convert(w, operand, arg.dtype, "float64"))]
        case "bool":
            return [("i64", w.pure(f"zext i1 {operand} to i64"))]
        case "index":
            return [("i64", operand)]
    wide = "uint64" if dtypes.is_unsigned(arg.dtype) else "int64"
    return [("i64", convert(w, operand, arg.dtype, wide))]
