"""Refuse programs with device threads or several launches, for the generators of CPU code."""

from __future__ import annotations

from dlcompiler.errors import TargetError
from dlcompiler.ir import For, PrimFunc, is_thread, walk_statements
from dlcompiler.ir.program import Program


def only_kernel(program: Program, language: str) -> PrimFunc:
    """Return the one kernel of a program for a CPU.

    Raises
    ------
    TargetError
        The program has loops that are bound to the threads of a device, or several kernels.
    """
    func = program.func
    loops = (each for each in walk_statements(func.body) if isinstance(each, For))
    bound = [loop for loop in loops if is_thread(loop.kind)]
    if bound:
        raise TargetError(
            f"generate {language} code for {func.name}",
            "a CPU has no device threads",
            got=", ".join(f"{loop.var.name}, bound to {loop.kind}" for loop in bound),
            hint="interpret(lower(s, args), arrays) runs it; on a CPU, use parallel and vectorize",
        )
    if len(program.launches) != 1:
        raise TargetError(
            f"generate {language} code for {func.name}",
            "a program for a CPU must be one kernel",
            got=f"{len(program.launches)} kernels",
            hint="build each of them by itself",
        )
    return program.kernels[0]
