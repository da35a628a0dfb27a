"""Products on tensor cores by ``mma.sync``, and copies of their tiles.

All threads of a warp run this code. Each loads, holds and stores the elements that
`target.fragments` gives its lane. ``ldmatrix`` loads a tile where `tiles.matrices` allows it.

**Source:** LLVM 22, User Guide for NVPTX Back-end; PTX ISA 8.8, "mma", "ldmatrix".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dlcompiler.arith import Analyzer
from dlcompiler.codegen.gpu import tiles
from dlcompiler.codegen.gpu.device_llvm import KernelStatements, register_type
from dlcompiler.codegen.gpu.nvvm.words import load_word
from dlcompiler.codegen.llvm.types import memory_type
from dlcompiler.codegen.llvm.writer import Function
from dlcompiler.ir import IntrinsicCall, Region
from dlcompiler.passes.fragments import Tiles, operands_of

PRODUCTS = {
    "float16": "m16n8k16.row.col.f32.f32",
    "bfloat16": "m16n8k16.row.col.bf16",
    "float32": "m16n8k8.row.col.tf32",
    "int8": "m16n8k32.row.col.s8",
}
"""Dtype of the factors -> LLVM's name of the product."""


@dataclass(frozen=True)
class _Registers:
    """The registers of a tile that a thread holds."""

    w: Function
    array: str
    """Address of the registers of all tiles."""
    first: str
    """Operand, an ``i64``: the number of the first one."""
    type: str
    count: int

    def _address(self, number: int) -> str:
        place = self.w.pure(f"add nuw nsw i64 {self.first}, {number}")
        return self.w.pure(f"getelementptr inbounds {self.type}, ptr {self.array}, i64 {place}")

    def load(self) -> Iterator[str]:
        """Write the loads of all registers."""
        for number in range(self.count):
            yield self.w.value(f"load {self.type}, ptr {self._address(number)}, align 4")

    def store(self, number: int, value: str) -> None:
        """Write the store of a register."""
        self.w.effect(f"store {self.type} {value}, ptr {self._address(number)}, align 4")


def multiply(kernel: KernelStatements, call: IntrinsicCall) -> None:
    """Append ``C[i, j] += A[i, k] * B[k, j]`` for a tile of each."""
    w = kernel.w
    (result, _, of), *operands = operands_of(call)
    total = _registers(kernel, result, of)
    zeros = ["0.0" if total.type == "float" else "0"] * total.count
    if call.mode == "reset":
        sums = zeros
    else:
        factors = [
            factor
            for region, _, tile in operands
            for factor in _factors(w, _registers(kernel, region, tile), region.buffer.dtype)
        ]
        before = list(total.load()) if call.mode == "update" else zeros
        given = [*factors, *(f"{total.type} {value}" for value in before)]
        made = f"{{ {', '.join([total.type] * total.count)} }}"
        types = ", ".join(value.rpartition(" ")[0] for value in given)
        name = f"llvm.nvvm.mma.{PRODUCTS[operands[0][0].buffer.dtype]}"
        symbol = w.module.declare(name, made, types, "convergent nounwind")
        product = w.value(f"call {made} {symbol}({', '.join(given)})")
        sums = [w.pure(f"extractvalue {made} {product}, {n}") for n in range(total.count)]
    for number, value in enumerate(sums):
        total.store(number, value)


def load(kernel: KernelStatements, call: IntrinsicCall) -> None:
    """Append the loads of a tile into the registers of a fragment."""
    copy = tiles.loaded(call)
    registers = _registers(kernel, copy.fragment, copy.tiles)
    matrices = tiles.matrices(copy, kernel.lane_index, Analyzer({}))
    if matrices is not None:
        _load_matrices(kernel, copy, registers, matrices)
        return
    for number, places in enumerate(tiles.places(copy, kernel.lane_index)):
        buffer = copy.memory.buffer
        if len(places) > 1:
            value = load_word(kernel, buffer, places)
        else:
            address = kernel.address(buffer, places[0])
            value = kernel.w.value(f"load {registers.type}, ptr {address}, align 4")
        registers.store(number, value)


def _load_matrices(
    kernel: KernelStatements, copy: tiles.Copy, registers: _Registers, matrices: tiles.Matrices
) -> None:
    """Append the load of all registers by one instruction."""
    w, made = kernel.w, f"{{ {', '.join(['i32'] * matrices.count)} }}"
    kind = f"x{matrices.count}{'.trans' * matrices.is_transposed}"
    name = f"llvm.nvvm.ldmatrix.sync.aligned.m8n8.{kind}.b16.p3"
    symbol = w.module.declare(name, made, "ptr addrspace(3)", "convergent nounwind")
    address = kernel.address(copy.memory.buffer, matrices.row)
    row = w.pure(f"addrspacecast ptr {address} to ptr addrspace(3)")
    loaded = w.value(f"call {made} {symbol}(ptr addrspace(3) {row})")
    for number in range(matrices.count):
        value = w.pure(f"extractvalue {made} {loaded}, {number}")
        if registers.type != "i32":
            value = w.pure(f"bitcast i32 {value} to {registers.type}")
        registers.store(number, value)


def store(kernel: KernelStatements, call: IntrinsicCall) -> None:
    """Append the stores of the registers of a fragment to memory."""
    copy = tiles.stored(call)
    values = list(_registers(kernel, copy.fragment, copy.tiles).load())
    buffer = copy.memory.buffer
    for value, (place,) in zip(values, tiles.places(copy, kernel.lane_index), strict=True):
        address = kernel.address(buffer, place)
        kernel.w.effect(f"store {memory_type(buffer.dtype)} {value}, ptr {address}, align 4")


def _registers(kernel: KernelStatements, region: Region, of: Tiles | None) -> _Registers:
    assert of is not None
    array = kernel.expressions.addresses.pointers[region.buffer]
    first = kernel.index(tiles.first_register(region, of))
    return _Registers(kernel.w, array, first, register_type(region.buffer), of.fragment.registers)


def _factors(w: Function, registers: _Registers, dtype: str) -> Iterator[str]:
    """Write the registers of a factor as the product takes them, with their types."""
    for value in registers.load():
        if dtype == "float16":
            yield f"<2 x half> {w.pure(f'bitcast i32 {value} to <2 x half>')}"
        elif dtype == "float32":
            rounds = w.module.declare("llvm.nvvm.f2tf32.rna", "i32", "float")
            yield f"i32 {w.pure(f'call i32 {rounds}(float {value})')}"
        else:
            yield f"i32 {value}"
