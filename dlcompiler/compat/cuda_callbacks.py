"""Functions that classic code registers to see, or to compile, the CUDA C of a build."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from dlcompiler.compat.functions import get_global_func
from dlcompiler.compat.notes import note
from dlcompiler.compat.targets import Target
from dlcompiler.errors import DeviceUnavailable, UserError

POSTPROC, COMPILE = "tvm_callback_cuda_postproc", "tvm_callback_cuda_compile"


def call_back(code: str, name: str, target: object) -> None:
    """Call the functions that are registered for the CUDA C of a program.

    One with two parameters gets the target, too, as in later versions.

    Parameters
    ----------
    code : str
        The source of its kernels.
    name : str
        The program.
    target : object
        What it is built for, as the code gives it.

    Raises
    ------
    UserError
        If a function returns other code: the simulator runs the program that was built.
    """
    where = f"build {name}"
    postproc = get_global_func(POSTPROC, allow_missing=True)
    if postproc is not None and _called(postproc, code, target) != code:
        raise UserError(
            where, f"{POSTPROC} returns other code", because="the simulator runs the program that "
            "was built, not its text", hint="return the code as it is",
        )  # fmt: skip
    compiler = get_global_func(COMPILE, allow_missing=True)
    if compiler is None:
        return
    try:
        _called(compiler, code, target)
    except DeviceUnavailable as error:
        note(f"{where}: {COMPILE} does not compile: {error.because or error.problem}", 5)


def _called(function: Callable[..., Any], code: str, target: object) -> Any:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # a function that is not written in Python
        return function(code)
    required = [p for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    if len(required) < 2:
        return function(code)
    return function(code, Target(target or Target.current()))
