"""Loop IR as its own source: what a simulator runs, and what a reader sees of it."""

from __future__ import annotations

from dlcompiler.codegen.interface import interface_of
from dlcompiler.ir.program import Program
from dlcompiler.runtime.source import Source, Text
from dlcompiler.target import Target


def emit(program: Program, target: Target) -> Source:
    """Return the kernels of a program as text, each with its launch."""
    del target  # every simulated machine reads the same loops
    interface = interface_of(program.func, program.func.name)
    return Source("loops", {"loops": Text(str(program))}, interface, program)
