"""Code generators: each turns a program of loop IR into text in one language, without a device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from dlcompiler.errors import TargetError
from dlcompiler.ir import PrimFunc
from dlcompiler.ir.program import Program
from dlcompiler.registry import Registry
from dlcompiler.runtime.source import Source, Text, Texts
from dlcompiler.target import Target

__all__ = ["REGISTRY", "Source", "emit"]

REGISTRY: Registry[Callable[[Program, Target], Source]] = Registry(
    "code generator",
    {
        "llvm": "dlcompiler.codegen.llvm:emit",
        "c": "dlcompiler.codegen.c:emit",
        "loops": "dlcompiler.codegen.loops:emit",
        "instructions": "dlcompiler.codegen.accelerator:emit",
        "cuda": "dlcompiler.codegen.gpu:emit_cuda",
        "opencl": "dlcompiler.codegen.gpu:emit_opencl",
        "hip": "dlcompiler.codegen.gpu:emit_hip",
        "metal": "dlcompiler.codegen.gpu:emit_metal",
        "ptx": "dlcompiler.codegen.gpu:emit_ptx",
        "amdgcn": "dlcompiler.codegen.gpu:emit_amdgcn",
        "sass": "dlcompiler.codegen.gpu:emit_sass",
    },
    ("__call__",),
)
"""Language -> its generator."""


def emit(program: Program | PrimFunc, target: Target) -> Source:
    """Generate code for a lowered program.

    Parameters
    ----------
    program
        Functions that `dlcompiler.ir.verify_func` accepts. A function by itself stands for the
        program of one kernel.
    target
        What the code is for; its language chooses the generator.

    Returns
    -------
    Source

    Raises
    ------
    TargetError
        No generator for its language, or the program uses what the target cannot do.
    """
    whole = Program.of(program) if isinstance(program, PrimFunc) else program
    operation = f"generate code for {whole.func.name}"
    source = REGISTRY.find(target.language, operation, error=TargetError)(whole, target)
    if not target.also_in:
        return source

    def text(language: str) -> Text:
        return REGISTRY.find(language, operation, error=TargetError)(whole, target).texts[language]

    others = {language: partial(text, language) for language in target.also_in}
    return replace(source, texts=Texts(source.texts, others))
