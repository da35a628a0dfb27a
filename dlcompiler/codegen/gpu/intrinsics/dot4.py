"""Dot products of four 8-bit numbers, added to an int32: the instruction ``dp4a``.

The four numbers of an operand are in one register. They are loaded at once where their address is
proved to be a multiple of 4 bytes, else one by one.

**Source:** PTX ISA 8.8, "dp4a".
"""

from __future__ import annotations

from dlcompiler.codegen.gpu.lanes import is_multiple
from dlcompiler.codegen.gpu.statements import KernelStatements
from dlcompiler.ir import Expr, IntrinsicCall, Region, index_const, place_in

GROUP = 4
"""Numbers in one register; [1]."""
Operand = tuple[Region, tuple[int, ...]]
"""A region, and the dimensions of its buffer that those of the declaration run along."""


def emit(kernel: KernelStatements, call: IntrinsicCall) -> None:
    """Append ``C[j] += X[g, q] * W[g, j, q]``, for all j and g, and q < 4."""
    result, *operands = call.operands
    (outputs,) = kernel.shape_of(result)
    if call.mode != "update":
        with kernel.unrolled("j", outputs) as j:
            kernel.writer.line(f"{_element(kernel, result, (j,))} = 0;")
    if call.mode != "reset":
        groups, _ = kernel.shape_of(operands[0])
        with kernel.unrolled("j", outputs) as j, kernel.unrolled("g", groups) as g:
            _add(kernel, result, operands, (j, g))


def _add(
    kernel: KernelStatements, result: Operand, operands: list[Operand], at: tuple[Expr, Expr]
) -> None:
    """Append one instruction."""
    j, g = at
    x, w = operands
    numbers = [_packed(kernel, x, (g,)), _packed(kernel, w, (g, j))]
    function = _function(kernel, x[0].buffer.dtype)
    total = _element(kernel, result, (j,))
    kernel.writer.line(f"{total} = {function}({', '.join(numbers)}, {total});")


def _function(kernel: KernelStatements, dtype: str) -> str:
    """Return the name of the function that is the instruction; X has this dtype, W has int8."""
    kind, register = ("u8", "u32") if dtype == "uint8" else ("s8", "s32")
    name = f"dlc_dot4_{kind}s8"
    kernel.expressions.arithmetic.helpers.add(
        f"/* c plus four products of 8-bit numbers, which are in x and w */\n"
        f"{kernel.dialect.helper} int {name}(int x, int w, int c)\n{{\n"
        f'    asm("dp4a.{register}.s32 %0, %1, %2, %0;" : "+r"(c) : "r"(x), "r"(w));\n'
        "    return c;\n}"
    )
    return name


def _packed(kernel: KernelStatements, operand: Operand, at: tuple[Expr, ...]) -> str:
    """Append the load of four numbers into one register, and return its name."""
    region, dims = operand
    buffer = region.buffer
    places = [place_in(region, dims, (*at, index_const(number))) for number in range(GROUP)]
    kernel.expressions.read.add(buffer)
    name = kernel.writer.names.new(f"{buffer.name}.four")
    if is_multiple(buffer, places[0], GROUP, kernel.expressions.analyzer):
        value = kernel.at_once(buffer, places[0], "int")
    else:
        kernel.expressions.start(*(index for place in places for index in place))
        elements = [kernel.expressions.element(buffer, place).text for place in places]
        parts = (f"(unsigned int)({e} & 255) << {8 * n}" for n, e in enumerate(elements))
        value = f"(int)({' | '.join(parts)})"
    kernel.writer.line(f"const int {name} = {value};")
    return name


def _element(kernel: KernelStatements, operand: Operand, at: tuple[Expr, ...]) -> str:
    region, dims = operand
    place = place_in(region, dims, at)
    kernel.expressions.start(*place)
    kernel.expressions.written.add(region.buffer)
    return kernel.expressions.element(region.buffer, place).text
