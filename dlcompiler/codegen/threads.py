"""Loops that are bound to the threads of a device, which a CPU does not have."""

from __future__ import annotations

from dlcompiler.errors import TargetError
from dlcompiler.ir import For, PrimFunc, is_thread, walk


def refuse_threads(func: PrimFunc, language: str) -> None:
    """Refuse a function with loops that are bound to the threads of a device.

    Raises
    ------
    TargetError
    """
    bound = [loop for loop in walk(func.body) if isinstance(loop, For) and is_thread(loop.kind)]
    if bound:
        raise TargetError(
            f"generate {language} code for {func.name}",
            "a CPU has no blocks and threads of a device",
            got=", ".join(f"{loop.var.name}, bound to {loop.kind}" for loop in bound),
            hint="interpret(lower(s, args), arrays) runs it; on a CPU, use parallel and vectorize",
        )
