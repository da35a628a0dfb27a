"""Keep each program for a GPU that a test generates code for, and what its simulation computed.

A plugin of pytest: ``-p tests.gpu_kernels.collecting``. Each process of pytest-xdist, and each of
their forks, writes files into ``DLCOMPILER_GPU_KERNELS``; what is there is not written again.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import os
from pathlib import Path

import numpy as np

import dlcompiler.codegen.gpu
import dlcompiler.codegen.loops
from dlcompiler.pipeline import executables
from tests.gpu_kernels.kept import Kept, read, write

LANGUAGES = ("cuda", "opencl", "hip", "metal", "ptx", "amdgcn", "sass")
MOST_BYTES = 1 << 22
"""Most memory of the arguments of a call that is kept [byte]."""
MOST_CALLS = 3
"""Calls that are kept of one program; [1]."""


def folder() -> Path:
    """Return the folder of the programs."""
    return Path(os.environ.get("DLCOMPILER_GPU_KERNELS", "build/gpu-kernels")).absolute()


FOLDER = folder()


def path_of(program) -> Path:
    """Return the file of a program, whose name depends on its printed text."""
    text = f"{program}\n{program.func}"
    return FOLDER / f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.pickle"


def keep(program, call=None) -> None:
    """Write a program, and a call of it, if they are not there yet."""
    path = path_of(program)
    kept = None
    if path.exists():
        if call is None:
            return
        kept = read(path)
        if len(kept.calls) >= MOST_CALLS:
            return
        kept.program = program  # an earlier version of the project may have written the file
    kept = kept or Kept(program, os.environ.get("PYTEST_CURRENT_TEST", "").split(" ")[0])
    if call is not None:
        kept.calls.append(call)
    new = path.with_suffix(f".{os.getpid()}")
    write(new, kept)
    new.replace(path)


def kept_before(emit):
    """Return a generator that keeps its program if it can generate code for it."""

    def keeping(program, target):
        source = emit(program, target)
        with contextlib.suppress(Exception):  # a test may hand over what no generator would get
            keep(program)
        return source

    return keeping


def kept_after(call):
    """Return a call of a simulated kernel that keeps its arguments."""

    def keeping(self, *arguments):
        before = None
        if all(isinstance(each, np.ndarray | int | float | np.generic) for each in arguments):
            size = sum(getattr(each, "nbytes", 0) for each in arguments)
            before = copy.deepcopy(arguments) if size <= MOST_BYTES else None
        result = call(self, *arguments)
        if before is not None:
            keep(self.program, (list(before), list(copy.deepcopy(arguments))))
        return result

    return keeping


FOLDER.mkdir(parents=True, exist_ok=True)
dlcompiler.codegen.loops.emit = kept_before(dlcompiler.codegen.loops.emit)
for language in LANGUAGES:
    name = f"emit_{language}"
    setattr(dlcompiler.codegen.gpu, name, kept_before(getattr(dlcompiler.codegen.gpu, name)))
executables.SimulatedKernel.__call__ = kept_after(executables.SimulatedKernel.__call__)
