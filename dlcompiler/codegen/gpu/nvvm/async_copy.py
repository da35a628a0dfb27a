"""Copy from global to shared memory while the thread goes on: the instruction ``cp.async``.

**Source:** PTX ISA 8.8, "cp.async"; LLVM 22, User Guide for NVPTX Back-end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlcompiler import dtypes
from dlcompiler.arith import Analyzer
from dlcompiler.codegen.gpu.lanes import aligned_start
from dlcompiler.codegen.llvm.addresses import Offset
from dlcompiler.codegen.llvm.writer import Function
from dlcompiler.ir import Load, Store
from dlcompiler.ir.expr import lanes_of

if TYPE_CHECKING:
    from dlcompiler.codegen.gpu.device_llvm import KernelStatements

GLOBAL, SHARED = 1, 3
"""Address spaces."""


def begin(kernel: KernelStatements, stmt: Store) -> None:
    """Append the start of a copy; `async_copies` tells which stores are copies."""
    assert isinstance(stmt.value, Load)
    w, source = kernel.w, stmt.value
    size = lanes_of(stmt.indices) * dtypes.bytes_of(stmt.buffer.dtype)
    ends = []
    for buffer, indices, space in (
        (stmt.buffer, stmt.indices, SHARED), (source.buffer, source.indices, GLOBAL)
    ):  # fmt: skip
        start = aligned_start(buffer, indices, Analyzer({}))
        assert start is not None
        offset = Offset(kernel.index(start), 0)
        address = kernel.expressions.addresses.pointer(buffer, offset)
        ends.append(
            f"ptr addrspace({space}) "
            + w.pure(f"addrspacecast ptr {address} to ptr addrspace({space})")
        )
    caches = "cg" if size == 16 else "ca"  # 16 bytes need not go through the first cache
    name = f"llvm.nvvm.cp.async.{caches}.shared.global.{size}"
    types = f"ptr addrspace({SHARED}), ptr addrspace({GLOBAL})"
    w.effect(f"call void {w.module.declare(name, 'void', types, 'nounwind')}({', '.join(ends)})")


def wait(w: Function) -> None:
    """Append the wait for all copies that this thread has begun."""
    symbol = w.module.declare("llvm.nvvm.cp.async.wait.all", "void", "", "nounwind")
    w.effect(f"call void {symbol}()")
