"""Classic TVM's ``tvm.contrib.nvcc``: what NVIDIA's GPUs can do, and compiling CUDA C.

The compiler is NVRTC, from the package nvidia-cuda-nvrtc-cu12; no GPU is needed. The GPU is the
simulated one of a target.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from dlcompiler.compat import targets
from dlcompiler.compat.devices import compute_version
from dlcompiler.compat.missing import reporter
from dlcompiler.compat.notes import note
from dlcompiler.errors import DeviceUnavailable, UserError
from dlcompiler.output_files import write_file
from dlcompiler.runtime import ptxas

FORMATS = ("ptx", "cubin")


def compile_cuda(
    code: str,
    target_format: str = "ptx",
    arch: Any = None,
    options: Any = None,
    path_target: Any = None,
    *,
    target: str | None = None,
) -> bytearray:
    """Compile CUDA C.

    Parameters
    ----------
    code : str
        The source.
    target_format, target : {"ptx", "cubin"}
        What to make of it: two names of one argument.
    arch : str, optional
        ``"sm_80"``; by default that of the current target.
    options : str or list of str, optional
        Flags of nvcc: accepted, with a note.
    path_target : path, optional
        A file to write the result to.

    Returns
    -------
    bytearray
        The assembly or the machine code.

    Raises
    ------
    DeviceUnavailable
        NVRTC or ptxas is not installed.
    UserError
        The code is refused, or an argument is wrong.
    """
    form = target or target_format
    where = f"compile_cuda to {form}"
    if form not in FORMATS:
        raise UserError(where, "no such format", got=repr(form), expected=" or ".join(FORMATS))
    if not isinstance(code, str):
        raise UserError(where, "the code is no text", got=repr(code))
    if options:
        note(f"{where}: the options are ignored: {options}")
    if arch is None:
        arch = "sm_" + "".join(map(str, parse_compute_version(get_target_compute_version())))
    if reason := ptxas.why_unavailable():
        raise DeviceUnavailable(where, "the compiler is not here", because=reason)
    with tempfile.TemporaryDirectory(prefix="dlcompiler-nvcc-") as folder:
        made = Path(folder, f"program.{form}")
        if reason := ptxas.compile_to(made, code, str(arch)):
            raise UserError(where, "the code is refused", got=str(arch), because=reason)
        data = made.read_bytes()
    if path_target is not None:
        write_file(Path(path_target), data)
    return bytearray(data)


def get_target_compute_version(target: Any = None) -> str:
    """Return the compute capability of a target, or of the current one: ``"8.0"``.

    Without a target, it is that of ``tvm.cuda(0)``.
    """
    chosen = target or targets.Target.current()
    if chosen is None or targets.kind_of(chosen) not in ("cuda", "nvptx", "gpu"):
        chosen = "cuda"
    return compute_version(targets.resolve(chosen))


def parse_compute_version(compute_version: Any) -> tuple[int, int]:
    """Return a compute capability as two numbers.

    Examples
    --------
    >>> parse_compute_version("7.5")
    (7, 5)
    """
    major, _, minor = str(compute_version).partition(".")
    if not (major.isdigit() and (minor or "0").isdigit()):
        raise UserError(
            "parse_compute_version", "no compute capability", got=repr(compute_version),
            expected="'8.0'",
        )  # fmt: skip
    return int(major), int(minor or 0)


def have_fp16(compute_version: Any) -> bool:
    """Tell whether arithmetic of halves has instructions: 5.3, and 6.0 or later."""
    return parse_compute_version(compute_version) == (5, 3) or at_least(compute_version, 6, 0)


def have_bf16(compute_version: Any) -> bool:
    """Tell whether arithmetic of bfloat16 has instructions: 8.0 or later."""
    return at_least(compute_version, 8, 0)


def have_int8(compute_version: Any) -> bool:
    """Tell whether dot products of 8-bit integers have an instruction: 6.1 or later."""
    return at_least(compute_version, 6, 1)


def have_tensorcore(compute_version: Any = None, target: Any = None) -> bool:
    """Tell whether a GPU has tensor cores: 7.0 or later.

    The intrinsics for them here need 8.0; a build for an older GPU says so.
    """
    if compute_version is None:
        compute_version = get_target_compute_version(target)
    return at_least(compute_version, 7, 0)


def at_least(compute_version: Any, major: int, minor: int) -> bool:
    """Tell whether a compute capability is this one or a later one."""
    return parse_compute_version(compute_version) >= (major, minor)


def have_cudagraph() -> bool:
    """Return False: launches are not recorded in graphs of CUDA."""
    return False


__getattr__ = reporter(__name__)
__all__ = [
    "compile_cuda",
    "get_target_compute_version",
    "have_bf16",
    "have_cudagraph",
    "have_fp16",
    "have_int8",
    "have_tensorcore",
    "parse_compute_version",
]
