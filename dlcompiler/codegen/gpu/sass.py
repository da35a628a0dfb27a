"""SASS, the machine code of NVIDIA's GPUs, from PTX by NVIDIA's own tools."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dlcompiler.codegen.gpu.assembly import emit_ptx
from dlcompiler.codegen.gpu.machines import NVPTX
from dlcompiler.errors import TargetError
from dlcompiler.ir.program import Program
from dlcompiler.runtime.nvidia_tools import disassembled
from dlcompiler.runtime.source import Source, Text
from dlcompiler.target import Target

_LOCATION = re.compile(r'\s*//## File "[^"]*", line (\d+)')
_INSTRUCTION = re.compile(r"\s*/\*[0-9a-f]+\*/")


def emit_sass(program: Program, target: Target) -> Source:
    """Return the instructions that NVIDIA's assembler makes of the PTX of a program.

    Parameters
    ----------
    program
        The kernels and launches.
    target
        The GPU: its generation decides the instructions.

    Raises
    ------
    DeviceUnavailable
        ``ptxas`` or ``nvdisasm`` is not installed.
    TargetError
        The target is no GPU of NVIDIA, or too old for ``nvdisasm``; or as of `emit_ptx`.
    """
    name = program.func.name
    if target.triple != NVPTX.triple:
        raise TargetError(
            f"disassemble {name}", "SASS is for one generation of NVIDIA's GPUs",
            got=f"the target {target.name}", expected="a target with a compute capability",
        )  # fmt: skip
    ptx = emit_ptx(program, target)
    made = list(_linked(disassembled(ptx.text, target.cpu, name)))
    text = Text("\n".join(line for line, _ in made) + "\n", tuple(line for _, line in made))
    return Source("sass", {"sass": text}, ptx.interface, program, ptx.launches)


def _linked(text: str) -> Iterator[tuple[str, int]]:
    """Yield each line with the line of the loop IR that the comment above it names."""
    number = 0
    for line in text.splitlines():
        if location := _LOCATION.match(line):
            number = int(location[1])
        elif line[:1].strip() and not line.startswith(".L"):  # another function
            number = 0
        yield line, number if location or _INSTRUCTION.match(line) else 0
