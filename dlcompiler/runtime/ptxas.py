"""Compile CUDA C without a GPU, and read how many registers ptxas gives its kernels.

NVIDIA's compiler NVRTC and assembler ptxas come in the packages nvidia-cuda-nvrtc-cu12 and
nvidia-cuda-nvcc-cu12. Both run in processes of their own, so that a failure of theirs is a reason.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

TIMEOUT_S = 60
_PACKAGES = "pip install nvidia-cuda-nvrtc-cu12 nvidia-cuda-nvcc-cu12"
_NVRTC = """
import ctypes, sys
library, architecture, out, *includes = sys.argv[1:]
nvrtc, program, size = ctypes.CDLL(library), ctypes.c_void_p(), ctypes.c_size_t()
text = sys.stdin.buffer.read()
nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"program.cu", 0, None, None)
options = [b"--gpu-architecture=" + architecture.encode(), b"--std=c++17", b"-w"]
options += [b"-I" + folder.encode() for folder in includes]
array = (ctypes.c_char_p * len(options))(*options)
status = nvrtc.nvrtcCompileProgram(program, len(options), array)
kind = "PTX" if status == 0 else "ProgramLog"
getattr(nvrtc, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
found = ctypes.create_string_buffer(size.value)
getattr(nvrtc, f"nvrtcGet{kind}")(program, found)
if status:
    sys.exit(found.value.decode("utf-8", "replace"))
open(out, "wb").write(found.value)
"""


@dataclass(frozen=True, slots=True)
class Assembled:
    """The resources of a kernel that ptxas has assembled."""

    registers: int
    """Registers of a thread; [1]."""
    spill_bytes: int
    """Stores of registers to memory, for lack of others; of a thread; [byte]."""
    shared_bytes: int
    """Shared memory of a block; [byte]."""
    local_bytes: int
    """Stack of a thread, for arrays that are not in registers and for spills; [byte]."""


def why_unavailable() -> str | None:
    """Return what is missing to compile CUDA C; None if nothing is."""
    tools = {"NVRTC": _nvrtc(), "ptxas": _ptxas()}
    missing = [name for name, path in tools.items() if path is None]
    return f"no {' and no '.join(missing)} ({_PACKAGES})" if missing else None


def assembled(cuda: str, architecture: str) -> Mapping[str, Assembled] | str:
    """Return the resources of each kernel in a text of CUDA C, or the reason why there are none.

    Parameters
    ----------
    cuda
        The text. Headers of CUDA are in the package nvidia-cuda-runtime-cu12.
    architecture
        ``"sm_86"``.
    """
    return why_unavailable() or _assembled(cuda, architecture)


@lru_cache(maxsize=64)
def _assembled(cuda: str, architecture: str) -> Mapping[str, Assembled] | str:
    with tempfile.TemporaryDirectory(prefix="dlcompiler-ptxas-") as folder:
        ptx = Path(folder, "program.ptx")
        if reason := compile_to(ptx, cuda, architecture):
            return reason
        done = _assemble(ptx, architecture)
    return done if isinstance(done, str) else resources_in(done.stderr)


def compile_to(path: Path, cuda: str, architecture: str) -> str | None:
    """Compile CUDA C into a file, and return the reason if that fails.

    Parameters
    ----------
    path
        The file: ``.ptx`` gets assembly, ``.cubin`` machine code.
    cuda
        The text.
    architecture
        ``"sm_86"``.
    """
    ptx, nvrtc = path.with_suffix(".ptx"), _nvrtc()
    assert nvrtc is not None
    virtual = architecture.replace("sm_", "compute_")
    includes = [folder for folder in [_file("cuda_runtime/include")] if folder is not None]
    made = _run([sys.executable, "-I", "-c", _NVRTC, nvrtc, virtual, ptx, *includes], cuda)
    if isinstance(made, str):
        return f"NVRTC refuses the code: {made}"
    done = _assemble(ptx, architecture) if path.suffix == ".cubin" else ""
    return done if isinstance(done, str) and done else None


def _assemble(ptx: Path, architecture: str) -> subprocess.CompletedProcess[str] | str:
    """Assemble a file of PTX into a ``.cubin`` beside it; return the reason if that fails."""
    ptxas = _ptxas()
    assert ptxas is not None
    command: list[str | Path] = [ptxas, "-v", f"-arch={architecture}", ptx]
    done = _run([*command, "-o", ptx.with_suffix(".cubin")])
    return f"ptxas refuses the code: {done}" if isinstance(done, str) else done


def resources_in(said: str) -> dict[str, Assembled]:
    """Return the resources of each kernel that ``ptxas -v`` has printed.

    Examples
    --------
    >>> said = '''ptxas info    : Compiling entry function 'f' for 'sm_86'
    ... ptxas info    : Function properties for f
    ...     8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
    ... ptxas info    : Used 40 registers, used 1 barriers, 2048 bytes smem, 376 bytes cmem[0]'''
    >>> resources_in(said)["f"]
    Assembled(registers=40, spill_bytes=4, shared_bytes=2048, local_bytes=8)
    """
    found = {}
    for part in said.split("Compiling entry function '")[1:]:

        def number(pattern: str, text: str = part) -> int:
            match = re.search(rf"(\d+) {pattern}", text)
            return int(match[1]) if match else 0

        found[part.partition("'")[0]] = Assembled(
            number("registers"), number("bytes spill stores"), number("bytes smem"),
            number("bytes stack frame"),
        )  # fmt: skip
    return found


def _run(command: list[str | Path], text: str = "") -> subprocess.CompletedProcess[str] | str:
    """Run a command; if it fails, return what it says."""
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, encoding="utf-8", errors="replace",
            timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"it took more than {TIMEOUT_S} s"
    except OSError as error:
        return str(error)
    return done.stderr.strip()[:300] or "it failed" if done.returncode else done


def _nvrtc() -> Path | None:
    return _file("cuda_nvrtc/lib/libnvrtc.so.12")


def _ptxas() -> Path | None:
    return _file("cuda_nvcc/bin/ptxas")


def _file(name: str) -> Path | None:
    """Return a file of NVIDIA's packages, which share the folder ``nvidia``."""
    spec = importlib.util.find_spec("nvidia")
    folders = spec.submodule_search_locations if spec else None
    paths = (Path(folder, name) for folder in folders or ())
    return next((path for path in paths if path.exists()), None)
