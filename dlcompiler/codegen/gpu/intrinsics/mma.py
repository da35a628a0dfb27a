"""Products on tensor cores by ``mma.sync``, and copies of their tiles.

All threads of a warp run this code. Each loads, holds and stores the elements that
`target.fragments` gives its lane. ``ldmatrix`` loads a tile where `tiles.matrices` allows it.

**Source:** PTX ISA 8.8, "mma", "ldmatrix".
"""

from __future__ import annotations

from dlcompiler import dtypes
from dlcompiler.codegen.gpu import tiles
from dlcompiler.codegen.gpu.statements import KernelStatements
from dlcompiler.ir import Buffer, IntrinsicCall, Region
from dlcompiler.passes.fragments import Tiles, operands_of

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
        a, b = (_multiplied(kernel, region, of) for region, _, of in operands)
        function = _function(kernel, operands[0][0].buffer.dtype, result[0].buffer.dtype)
        kernel.writer.line(f"{function}({total}, {a}, {b});")


def load(kernel: KernelStatements, call: IntrinsicCall) -> None:
    """Append the loads of a tile into the registers of a fragment."""
    copy = tiles.loaded(call)
    registers = _registers(kernel, copy.fragment, copy.tiles)
    assert kernel.lane is not None
    matrices = tiles.matrices(copy, kernel.lane, kernel.expressions.analyzer)
    if matrices is not None:
        _load_matrices(kernel, copy, registers, matrices)
        return
    for register, elements in enumerate(tiles.places(copy, kernel.lane)):
        value = _packed(kernel, copy.memory.buffer, elements)
        kernel.writer.line(f"{registers}[{register}] = {value};")


def _load_matrices(
    kernel: KernelStatements, copy: tiles.Copy, registers: str, matrices: tiles.Matrices
) -> None:
    """Append the load of all registers by one instruction."""
    buffer, count = copy.memory.buffer, matrices.count
    type_ = kernel.register_type(copy.fragment.buffer)
    name = f"dlc_load_matrices_{count}"
    name += "_transposed" * matrices.is_transposed + "_float" * (type_ == "float")
    kind = f"x{count}{'.trans' * matrices.is_transposed}.shared.b16"
    letter = "f" if type_ == "float" else "r"
    outputs = ", ".join(f'"={letter}"(to[{n}])' for n in range(count))
    given = ", ".join(f"%{n}" for n in range(count))
    kernel.expressions.arithmetic.helpers.add(
        f"/* load {count} matrices of 8 rows of 16 bytes, by all threads of a warp */\n"
        f"{kernel.dialect.helper} void {name}({type_} *to, const void *row)\n{{\n"
        "    unsigned int place = (unsigned int)__cvta_generic_to_shared(row);\n"
        f'    asm volatile("ldmatrix.sync.aligned.m8n8.{kind} {{{given}}}, [%{count}];"\n'
        f'            : {outputs} : "r"(place) : "memory");\n}}'
    )
    kernel.expressions.read.add(buffer)
    kernel.expressions.start(*matrices.row)
    element = kernel.expressions.element(buffer, matrices.row).text
    kernel.writer.line(f"{name}({registers}, &{element});")


def store(kernel: KernelStatements, call: IntrinsicCall) -> None:
    """Append the stores of the registers of a fragment to memory."""
    copy = tiles.stored(call)
    registers = _registers(kernel, copy.fragment, copy.tiles)
    kernel.expressions.written.add(copy.memory.buffer)
    assert kernel.lane is not None
    for register, (place,) in enumerate(tiles.places(copy, kernel.lane)):
        kernel.expressions.start(*place)
        element = kernel.expressions.element(copy.memory.buffer, place).text
        kernel.writer.line(f"{element} = {registers}[{register}];")


def _registers(kernel: KernelStatements, region: Region, of: Tiles | None) -> str:
    """Append a pointer to this thread's registers of a tile, and return its name."""
    assert of is not None
    buffer = region.buffer
    kernel.expressions.read.add(buffer)
    number = tiles.first_register(region, of)
    kernel.expressions.start(number)
    first = kernel.expressions.value(number)
    array = kernel.expressions.buffers[buffer]
    if first.text == "0":
        return array
    name = kernel.writer.names.new(f"{buffer.name}.tile")
    kernel.writer.line(f"{kernel.register_type(buffer)} *{name} = {array} + {first.text};")
    return name


def _multiplied(kernel: KernelStatements, region: Region, of: Tiles | None) -> str:
    """Return the registers of a factor; those of TF32 are rounded first."""
    assert of is not None
    registers = _registers(kernel, region, of)
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
    count = of.fragment.registers
    values = ", ".join(f"dlc_to_tf32({registers}[{number}])" for number in range(count))
    kernel.writer.line(f"const unsigned int {name}[{count}] = {{{values}}};")
    return name


def _packed(kernel: KernelStatements, buffer: Buffer, places: list[tiles.Place]) -> str:
    """Return a register made of neighbouring elements, or of single ones."""
    kernel.expressions.read.add(buffer)
    if len(places) == 1:
        kernel.expressions.start(*places[0])
        return kernel.expressions.element(buffer, places[0]).text
    if tiles.are_one_word(buffer, places, kernel.expressions.analyzer):
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
