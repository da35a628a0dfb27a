"""Products on tensor cores by ``mma.sync``, and copies of their tiles by plain loads and stores.

All threads of a warp run this code. Each loads, holds and stores the elements that
`target.fragments` gives its lane.

**Source:** PTX ISA 8.8, "mma".
"""

from __future__ import annotations

from collections.abc import Iterator

from dlcompiler import dtypes
from dlcompiler.codegen.gpu.lanes import is_multiple
from dlcompiler.codegen.gpu.statements import KernelStatements
from dlcompiler.ir import Buffer, Expr, IntrinsicCall, Region, binary, index_const, place_in
from dlcompiler.passes.flatten_storage import flat_index
from dlcompiler.passes.fragments import Tiles, operands_of
from dlcompiler.target.fragments import Fragment

OPERANDS = {
    "float16": ("m16n8k16", "f16"),
    "bfloat16": ("m16n8k16", "bf16"),
    "float32": ("m16n8k8", "tf32"),
    "int8": ("m16n8k32", "s8"),
}
"""Dtype of the operands -> the shape of the product and the type, as the instruction names them."""
SUMS = {"float32": "f32", "int32": "s32"}
"""Dtype of the sums -> its name in the instruction."""


def multiply(kernel: KernelStatements, call: IntrinsicCall) -> None:
    """Append ``C[i, j] += A[i, k] * B[k, j]`` for a tile of each."""
    result, *operands = operands_of(call)
    total = _registers(kernel, result[0], result[2])
    if call.mode != "update":
        for number in range(4):
            kernel.writer.line(f"{total}[{number}] = 0;")
    if call.mode != "reset":
        a, b = (_multiplied(kernel, region, tiles) for region, _, tiles in operands)
        function = _function(kernel, operands[0][0].buffer.dtype, result[0].buffer.dtype)
        kernel.writer.line(f"{function}({total}, {a}, {b});")


def load(kernel: KernelStatements, call: IntrinsicCall) -> None:
    """Append the loads of a tile into the registers of a fragment."""
    (region, dims, tiles), (source, along, _) = operands_of(call)
    assert tiles is not None
    registers = _registers(kernel, region, tiles)
    is_transposed = dims != call.dims[0]
    rows_and_columns = (along[1], along[0]) if is_transposed else along
    packed = tiles.fragment.packed
    places = list(_places(kernel, tiles.fragment, source, rows_and_columns))
    for register in range(tiles.fragment.registers):
        own = places[register * packed : (register + 1) * packed]
        value = _packed(kernel, source.buffer, own)
        kernel.writer.line(f"{registers}[{register}] = {value};")


def store(kernel: KernelStatements, call: IntrinsicCall) -> None:
    """Append the stores of the registers of a fragment to memory."""
    (target, along, _), (region, _, tiles) = operands_of(call)
    assert tiles is not None
    registers = _registers(kernel, region, tiles)
    kernel.expressions.written.add(target.buffer)
    for number, place in enumerate(_places(kernel, tiles.fragment, target, along)):
        kernel.expressions.start(*place)
        element = kernel.expressions.element(target.buffer, place).text
        kernel.writer.line(f"{element} = {registers}[{number}];")


def _registers(kernel: KernelStatements, region: Region, tiles: Tiles | None) -> str:
    """Append a pointer to this thread's registers of a tile, and return its name."""
    assert tiles is not None
    buffer = region.buffer
    tile: Expr = index_const(0)
    kernel.expressions.read.add(buffer)
    for dim, count in enumerate(tiles.counts(buffer)):
        index = _quotient(region.indices[dim], tiles.size(dim))
        tile = binary("add", binary("mul", tile, index_const(count)), index)
    kernel.expressions.start(tile)
    first = kernel.expressions.value(binary("mul", tile, index_const(tiles.fragment.registers)))
    array = kernel.expressions.buffers[buffer]
    if first.text == "0":
        return array
    name = kernel.writer.names.new(f"{buffer.name}.tile")
    kernel.writer.line(f"{kernel.register_type(buffer)} *{name} = {array} + {first.text};")
    return name


def _multiplied(kernel: KernelStatements, region: Region, tiles: Tiles | None) -> str:
    """Return the registers of a factor; those of TF32 are rounded first."""
    assert tiles is not None
    registers = _registers(kernel, region, tiles)
    if region.buffer.dtype != "float32":
        return registers
    kernel.expressions.arithmetic.helpers.add(
        "/* the bits of x, rounded to TF32, halves away from 0 */\n"
        f"{kernel.dialect.helper} unsigned int dlc_to_tf32(float x)\n{{\n"
        "    unsigned int bits;\n"
        '    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));\n'
        "    return bits;\n}"
    )
    name = kernel.writer.names.new(f"{region.buffer.name}.tf32")
    count = tiles.fragment.registers
    values = ", ".join(f"dlc_to_tf32({registers}[{number}])" for number in range(count))
    kernel.writer.line(f"const unsigned int {name}[{count}] = {{{values}}};")
    return name


def _quotient(index: Expr, size: int) -> Expr:
    return index if size == 1 else binary("floordiv", index, index_const(size))


def _places(
    kernel: KernelStatements, fragment: Fragment, region: Region, along: tuple[int, ...]
) -> Iterator[tuple[Expr, ...]]:
    """Yield the index in memory of each element that this thread holds."""
    four = index_const(4)
    group = binary("floordiv", kernel.lane, four)
    within = binary("floormod", kernel.lane, four)
    step = 2 if fragment.matrix == "c" else fragment.packed
    along_row, along_column = (group, binary("mul", within, index_const(step)))
    if fragment.matrix == "b":
        along_row, along_column = along_column, along_row
    for element in range(fragment.elements):
        row, column = fragment.offset(element)
        place = (
            binary("add", along_row, index_const(row)),
            binary("add", along_column, index_const(column)),
        )
        yield place_in(region, along, place)


def _packed(kernel: KernelStatements, buffer: Buffer, places: list[tuple[Expr, ...]]) -> str:
    """Return a register made of neighbouring elements, or of single ones."""
    kernel.expressions.read.add(buffer)
    if len(places) == 1:
        kernel.expressions.start(*places[0])
        return kernel.expressions.element(buffer, places[0]).text
    analyzer = kernel.expressions.analyzer
    first = analyzer.affine(flat_index(buffer, places[0]))
    distances = [analyzer.affine(flat_index(buffer, place)).plus(first, -1) for place in places]
    are_neighbours = all(d.is_constant and d.constant == n for n, d in enumerate(distances))
    if are_neighbours and is_multiple(buffer, places[0], len(places), analyzer):
        return kernel.at_once(buffer, places[0], "unsigned int")
    bits = dtypes.bits(buffer.dtype)
    kernel.expressions.start(*(index for place in places for index in place))
    elements = [kernel.expressions.element(buffer, place).text for place in places]
    parts = (
        f"(unsigned int)({element} & {2**bits - 1:#x})" + (f" << {bits * n}" if n else "")
        for n, element in enumerate(elements)
    )
    return " | ".join(parts)


def _function(kernel: KernelStatements, dtype: str, sums: str) -> str:
    """Return the name of the function that is the instruction."""
    shape, factors = OPERANDS[dtype]
    name = f"dlc_mma_{factors}"
    type_, letter = ("float", "f") if sums == "float32" else ("int", "r")
    kind = ".".join((SUMS[sums], factors, factors, SUMS[sums]))
    outputs = ", ".join(f'"+{letter}"(c[{n}])' for n in range(4))
    inputs = ", ".join([*(f'"r"(a[{n}])' for n in range(4)), *(f'"r"(b[{n}])' for n in range(2))])
    lines = (
        f"/* c += a*b on tensor cores, by all threads of a warp: {shape} */",
        f"{kernel.dialect.helper} void {name}({type_} *c, const unsigned int *a, "
        "const unsigned int *b)",
        "{",
        f'    asm volatile("mma.sync.aligned.{shape}.row.col.{kind} "',
        '            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"',
        f"            : {outputs}",
        f"            : {inputs});",
        "}",
    )
    kernel.expressions.arithmetic.helpers.add("\n".join(lines))
    return name
