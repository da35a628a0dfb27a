"""Give one kept program to the compilers, and compare what OpenCL computes with the simulator."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dlcompiler.codegen.gpu import emit_cuda, emit_opencl, emit_ptx
from dlcompiler.errors import DLCompilerError, TargetError
from dlcompiler.pipeline.devices import load
from dlcompiler.runtime.source import Source
from dlcompiler.simulate.steps import count_steps
from dlcompiler.target import resolve
from dlcompiler.target.gpus import BY_NAME
from tests.gpu_kernels.compilers import nvrtc, ptxas
from tests.gpu_kernels.kept import Kept, read


@dataclass
class Outcome:
    """What was found for one program."""

    program: str
    test: str
    counts: dict[str, int] = field(default_factory=dict)
    """How often each thing was tried."""
    problems: list[str] = field(default_factory=list)


CHECKS = ("cuda", "ptx", "opencl")
CAPABILITIES = {target.cpu: target for target in BY_NAME.values()}
"""A preset of each compute capability, by the name of its architecture."""
MOST_STEPS = 20_000
"""Longest program for oclgrind, in steps of the interpreter; [1]."""
ULPS = 64
"""Difference of floats that is reported: a sum in another order differs; [1]."""


def tried(path: Path, checks: Sequence[str] = CHECKS) -> Outcome:
    """Compile and run a program; return its problems and counts."""
    kept = read(path)
    outcome = Outcome(path.stem, kept.test)
    for name in checks:
        for what, problem in globals()[f"in_{name}"](kept):
            outcome.counts[what] = outcome.counts.get(what, 0) + 1
            if problem:
                outcome.problems.append(f"{what}: {problem}")
    return outcome


def in_cuda(kept: Kept) -> Iterator[tuple[str, str]]:
    """Yield what NVRTC says for each architecture."""
    return _compiled("CUDA C", emit_cuda, "NVRTC", nvrtc, kept)


def in_ptx(kept: Kept) -> Iterator[tuple[str, str]]:
    """Yield what ptxas says for each architecture."""
    return _compiled("PTX", emit_ptx, "ptxas", ptxas, kept)


def _compiled(
    language: str, emit: Callable[..., Source], compiler: str, said: Callable[[str, str], str],
    kept: Kept,
) -> Iterator[tuple[str, str]]:  # fmt: skip
    for architecture, target in CAPABILITIES.items():
        try:
            text = emit(kept.program, target).text
        except TargetError as error:
            yield f"{language} refused: {first_line(error)}", ""
            return
        except DLCompilerError as error:
            yield language, str(error)
            return
        yield f"{compiler} {architecture}", said(text, architecture)


def in_opencl(kept: Kept) -> Iterator[tuple[str, str]]:
    """Yield how the calls on the OpenCL device differ from those of the simulator."""
    return _called("OpenCL", "opencl", emit_opencl, kept)


def in_device(kept: Kept) -> Iterator[tuple[str, str]]:
    """Yield how the calls on the NVIDIA GPU differ from those of the simulator."""
    return _called("CUDA", "cuda", emit_cuda, kept)


def _called(
    name: str, target: str, emit: Callable[..., Source], kept: Kept
) -> Iterator[tuple[str, str]]:
    machine = resolve(target)
    try:
        kernel = load(emit(kept.program, machine), machine)
        for before, after in kept.calls:
            kernel(*before)
            yield f"{name} calls", difference(before, after)
    except TargetError as error:
        yield f"{name} C refused: {first_line(error)}", ""
    except DLCompilerError as error:
        yield f"{name} C", str(error)


def in_oclgrind(kept: Kept) -> Iterator[tuple[str, str]]:
    """Yield what oclgrind says of short calls: `__main__` has made it the OpenCL device."""
    if count_steps(kept.program.func) > MOST_STEPS or kept.program.func.variables:
        yield "too long for oclgrind", ""
        return
    log = Path(os.environ["OCL_ICD_VENDORS"], f"{os.getpid()}.log")
    os.environ["OCLGRIND_LOG"] = str(log)  # before the library is loaded
    for what, problem in in_opencl(kept):
        yield what, problem
        said = log.read_text() if log.exists() else ""
        log.write_text("")
        yield "oclgrind", said[:2000]


def difference(got: list[object], expected: list[object]) -> str:
    """Return how the arrays of a call differ from the expected ones; '' if they do not."""
    for a, b in zip(got, expected, strict=True):
        if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
            continue
        is_float = a.dtype.kind == "f" or a.dtype.name == "bfloat16"
        far = _distance(a, b) > ULPS if is_float else a != b
        if far.any():
            at = tuple(np.argwhere(far)[0])
            return f"{a.dtype} at {at}: {a[at]}, expected {b[at]}"
    return ""


def _distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the distances of floats, in units in the last place of the array's largest numbers."""
    epsilon = 2.0**-8 if a.dtype.name == "bfloat16" else float(np.finfo(a.dtype).eps)
    x, y = (np.asarray(each, np.float64) for each in (a, b))
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(y), np.abs(y[np.isfinite(y)]).max(initial=0) / 10)
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        return np.where(same, 0.0, np.nan_to_num(np.abs(x - y) / size, nan=np.inf) / epsilon)


def first_line(error: Exception) -> str:
    """Return the first line of an error, without the name of the program."""
    return str(error).splitlines()[0].partition(": ")[2] or str(error).splitlines()[0]
