"""Generate the source for a simulator: each launch, followed by the kernel's printed loop IR."""

from __future__ import annotations

from collections.abc import Iterator

from dlcompiler.codegen.interface import interface_of
from dlcompiler.codegen.lines import printed_statements, statement_lines
from dlcompiler.ir import If, Stmt, walk
from dlcompiler.ir.program import Launch, Program
from dlcompiler.runtime.source import Source, Text
from dlcompiler.target import Target


def emit(program: Program, target: Target) -> Source:
    """Return the kernels of a program as text, each with its launch.

    Parameters
    ----------
    program
        Any program; the simulator runs it from `Source.program`, not from the text.
    target
        Not used: every simulated machine reads the same loops.

    Returns
    -------
    Source
        One text, ``"loops"``. Its `lines` are those of the printed `program.func`.
    """
    del target
    lines: list[int] = []
    for number, launch in enumerate(program.launches):
        blank = [0] if number else []  # `Program.__str__` separates kernels by an empty line
        lines += [*blank, 0, 1, *_lines(program, launch)]
    interface = interface_of(program.func, program.func.name)
    return Source("loops", {"loops": Text(str(program), tuple(lines))}, interface, program)


def _lines(program: Program, launch: Launch) -> Iterator[int]:
    """Yield the line in `program.func` of each printed line of a kernel's body."""
    line_of = statement_lines(program.func)
    # A condition around several kernels is printed in each of them; only the node is a new one.
    of_condition = {
        id(node.condition): line_of[id(node)]
        for node in walk(program.func.body)
        if isinstance(node, If)
    }
    nest: Stmt = launch.kernel.body if launch.nest is None else launch.nest
    for statement in printed_statements(nest):
        line = line_of.get(id(statement), 0)
        if not line and isinstance(statement, If):
            line = of_condition.get(id(statement.condition), 0)
        yield line
