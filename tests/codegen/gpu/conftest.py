"""Compilers and devices for GPU code, where they are installed."""

import ctypes
import importlib.util
import os
import subprocess
from pathlib import Path

import pytest

from dlcompiler.runtime import nvidia_tools
from dlcompiler.runtime.c_source import c_compiler

PACKAGE = nvidia_tools.PACKAGES["ptxas"]


@pytest.fixture(scope="session")
def nvrtc():
    """NVIDIA's compiler for CUDA C, from the package nvidia-cuda-nvrtc-cu12: no GPU is needed."""
    spec = importlib.util.find_spec("nvidia") and importlib.util.find_spec("nvidia.cuda_nvrtc")
    if not spec:
        _missing("no NVRTC: pip install --group gpu")
    (folder,) = spec.submodule_search_locations
    library = ctypes.CDLL(str(Path(folder) / "lib" / "libnvrtc.so.12"))
    return lambda text, architecture: _compile(library, text, architecture)


@pytest.fixture(scope="session")
def ptxas(tmp_path_factory):
    """NVIDIA's assembler, from the package nvidia-cuda-nvcc-cu12: no GPU is needed.

    Another one on the search path may not know all generations: since 13.0, none before sm_75.
    """
    if reason := nvidia_tools.why_unavailable("ptxas"):
        _missing(reason)
    path = tmp_path_factory.mktemp("ptx") / "kernels.ptx"
    command = [nvidia_tools.find_tool("ptxas"), "-lineinfo", path, "-o", os.devnull]

    def said(text, architecture):
        """Return what the assembler says: nothing if it accepts the text."""
        path.write_text(text)
        done = subprocess.run([*command, f"-arch={architecture}"], capture_output=True, text=True)
        assert done.returncode == 0 or done.stderr
        if f"Value '{architecture}' is not defined" in done.stderr:
            _missing(f"{command[0]} does not know {architecture}: pip install {PACKAGE}")
        return done.stderr

    return said


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Libraries of emulated kernels, which stay loaded."""
    if c_compiler() is None:
        pytest.skip("no C compiler")
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture
def missing():
    """Skip the test for a reason; it fails when CI is set."""
    return _missing


def _missing(reason):
    """Skip the test; it fails when CI is set."""
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def _compile(library, text, architecture):
    """Return what the compiler says, and PTX; that is empty after an error."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    made = ctypes.byref(program)
    library.nvrtcCreateProgram(made, text.encode(), b"program.cu", 0, None, None)
    options = [f"--gpu-architecture={architecture}".encode(), b"--std=c++17", b"-w"]
    status = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * 3)(*options))
    said = _text(program, library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog, size)
    ptx = ""
    if status == 0:
        ptx = _text(program, library.nvrtcGetPTXSize, library.nvrtcGetPTX, size)
    library.nvrtcDestroyProgram(made)
    return said, ptx


def _text(program, get_size, get, size):
    get_size(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    get(program, buffer)
    return buffer.value.decode()
