"""Entry points of the generators of assembly for GPUs: PTX and AMDGCN, by means of LLVM.

LLVM runs in a child process, because it ends its process where it cannot generate code. No toolkit
of a vendor is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dlcompiler.codegen.c.names import Names
from dlcompiler.codegen.gpu.device_llvm import Kernel, write_kernel
from dlcompiler.codegen.gpu.launches import launches_of
from dlcompiler.codegen.gpu.machines import AMDGPU, NVPTX, Machine
from dlcompiler.codegen.interface import interface_of
from dlcompiler.codegen.lines import statement_lines
from dlcompiler.codegen.llvm.bfloat16 import ROUNDS
from dlcompiler.codegen.llvm.debug import DebugInfo
from dlcompiler.codegen.llvm.writer import Module
from dlcompiler.ir.program import Program
from dlcompiler.passes.merge_thread_loops import merge_thread_loops
from dlcompiler.runtime.cross import assembly_elsewhere
from dlcompiler.runtime.options import Options
from dlcompiler.runtime.source import Source, Text
from dlcompiler.target import Target

_LOCATION = re.compile(r"\s+\.loc\s+\d+\s+(\d+)\b")
_INSTRUCTION = re.compile(r"\s+[@a-z{]")
_INDEX = re.compile(r"\s+mov\.u32\s.*%(?:cta|t)id\.")
"""An instruction of PTX that reads the index of a thread or block."""
_DEBUG = re.compile(r"\s+\.section\s+\"?\.debug")
_SECTION = re.compile(r"\s+\.(section|text)\b")
_FILE = re.compile(r"\s+\.file\b")


def emit_ptx(program: Program, target: Target) -> Source:
    """Generate PTX, the assembly language of NVIDIA's GPUs: an ``.entry`` for each kernel.

    Parameters
    ----------
    program
        The kernels and launches.
    target
        The GPU. PTX for a target that names no NVIDIA GPU is for compute capability 5.2, which all
        later GPUs run, too.

    Returns
    -------
    Source
        Each line of the text is linked to the line of the loop IR that it implements. An array that
        is accessed by vectors must begin at a multiple of 16 bytes.

    Raises
    ------
    TargetError
        The threads of a kernel cannot be written as those of a GPU (see `merge_thread_loops`); a
        kernel has memory of an unknown size, or calls a function of this process.
    """
    return _emit(program, target, NVPTX)


def emit_amdgcn(program: Program, target: Target) -> Source:
    """Generate the assembly of an AMD GPU, gfx90a if the target names none. As of `emit_ptx`."""
    return _emit(program, target, AMDGPU)


def llvm_module(
    program: Program, machine: Machine, cpu: str = "", emits: frozenset[str] = frozenset()
) -> tuple[Module, Source]:
    """Return the module with the kernels of a program, and a source without texts.

    Parameters
    ----------
    program
        The kernels and launches.
    machine
        What they are for.
    cpu
        LLVM's name of the processor; without one, only what all of them have is used.
    emits
        The tensor intrinsics that are instructions, by the names of their emitters; the others are
        the loops of their declarations.
    """
    has_rounding = cpu.startswith(machine.rounds_to_bfloat16)
    module = Module(
        DebugInfo(program.func.name, machine.emission),
        machine.triple,
        has_library=False,
        features=frozenset({ROUNDS} if has_rounding else ()),
        stack_space=machine.stack_space,
    )
    names, line_of = Names(), statement_lines(program.func)
    calls = {}
    for place, launch in enumerate(program.launches):
        symbol = names.new(launch.kernel.name)
        kernel = Kernel(
            launch, merge_thread_loops(launch), symbol, line_of, emits, machine.most_shared_bytes
        )
        write_kernel(module, machine, kernel)
        calls[place] = kernel.called
    interface = interface_of(program.func, program.func.name, module.messages)
    return module, Source(machine.language, {}, interface, program, launches_of(program, calls))


def _emit(program: Program, target: Target, machine: Machine) -> Source:
    known = target.triple == machine.triple
    cpu = target.cpu if known else machine.cpu
    emits = machine.always | (machine.intrinsics & target.emits if known else frozenset())
    module, source = llvm_module(program, machine, cpu, emits)
    text, _ = module.finished()
    options = Options(
        machine.triple, cpu,
        (*(target.features if known else ()), *machine.features.get(cpu[:4], ())),
        unroll=True,  # arrays of a thread are in registers only if all their indices are constant
    )  # fmt: skip
    made = list(_linked(assembly_elsewhere(text, options, program.func.name)))
    written = Text("\n".join(line for line, _ in made) + "\n", tuple(line for _, line in made))
    return Source(
        source.language,
        {machine.language: written},
        source.interface,
        program,
        source.launches,
    )


def _linked(text: str) -> Iterator[tuple[str, int]]:
    """Yield each line of assembly with the line of the loop IR that its location names."""
    number, is_debug = 0, False
    for line in text.splitlines():
        if _SECTION.match(line):
            is_debug = bool(_DEBUG.match(line))
        if is_debug and not _FILE.match(line):
            continue
        if location := _LOCATION.match(line):
            number = int(location[1])
        if line[:1].strip():  # a label, a directive or a brace of a function
            number = number if line.startswith(("$", ".LBB")) else 0
        yield line, number if _INSTRUCTION.match(line) or location else 0
        if _INDEX.match(line):  # what follows without a location was moved there from anywhere
            number = 0
