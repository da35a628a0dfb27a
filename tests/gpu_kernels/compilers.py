"""NVIDIA's compilers from their wheels, without a GPU: what they say of a text."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import subprocess
import tempfile
from pathlib import Path

from dlcompiler.runtime import nvidia_tools


@functools.cache
def _library() -> ctypes.CDLL:
    spec = importlib.util.find_spec("nvidia.cuda_nvrtc")
    assert spec is not None
    (folder,) = spec.submodule_search_locations
    return ctypes.CDLL(str(Path(folder) / "lib" / "libnvrtc.so.12"))


def nvrtc(text: str, architecture: str) -> str:
    """Compile CUDA C to machine code of an architecture; return the errors: '' if none."""
    library = _library()
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    made = ctypes.byref(program)
    library.nvrtcCreateProgram(made, text.encode(), b"program.cu", 0, None, None)
    options = [f"--gpu-architecture={architecture}".encode(), b"--std=c++17", b"-w"]
    status = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * 3)(*options))
    said = f"status {status}"
    if status:
        library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        library.nvrtcGetProgramLog(program, log)
        said += log.value.decode(errors="replace")
    library.nvrtcDestroyProgram(made)
    return said if status else ""


def ptxas(text: str, architecture: str) -> str:
    """Assemble PTX for an architecture; return what the assembler says: '' if it accepts it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernels.ptx"
        path.write_text(text)
        tool = nvidia_tools.find_tool("ptxas")
        command = [str(tool), "-lineinfo", str(path), "-o", os.devnull, f"-arch={architecture}"]
        done = subprocess.run(command, capture_output=True, text=True)
    return done.stderr if done.returncode == 0 or done.stderr else f"status {done.returncode}"
