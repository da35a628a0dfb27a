"""Code generators: loop IR in, text for one kind of target out. Pure: no device is needed."""

from __future__ import annotations

from collections.abc import Callable

from dlcompiler.codegen.source import Source
from dlcompiler.errors import TargetError
from dlcompiler.ir import PrimFunc
from dlcompiler.registry import Registry
from dlcompiler.target import Target

__all__ = ["REGISTRY", "Source", "emit"]

REGISTRY: Registry[Callable[[PrimFunc, Target], Source]] = Registry(
    "code generator",
    {
        "llvm": "dlcompiler.codegen.llvm:emit",
        "c": "dlcompiler.codegen.c:emit",
    },
)
"""Language -> its generator."""


def emit(func: PrimFunc, target: Target) -> Source:
    """Generate code for a lowered function.

    Parameters
    ----------
    func
        A function that `dlcompiler.ir.verify_func` accepts.
    target
        What the code is for; its language chooses the generator.

    Returns
    -------
    Source

    Raises
    ------
    TargetError
        No generator for its language, or the function uses what the target cannot do.
    """
    operation = f"generate code for {func.name}"
    return REGISTRY.find(target.language, operation, error=TargetError)(func, target)
