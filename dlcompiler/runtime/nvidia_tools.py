"""Run the assembler and the disassembler of NVIDIA's toolkit, where they are installed.

Neither needs a GPU or a driver. They are found in the packages that are named in `PACKAGES`, or in
a toolkit that is on the search path of programs.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from dlcompiler.errors import DeviceUnavailable, TargetError
from dlcompiler.runtime.private_folders import private_folder

PACKAGES: Mapping[str, str] = MappingProxyType(
    {"ptxas": "nvidia-cuda-nvcc-cu12", "nvdisasm": "nvidia-cuda-nvdisasm"}
)
"""Tool -> the package on PyPI that has it."""
LIMIT_S = 120.0


def find_tool(name: str) -> Path | None:
    """Return the path of a tool, or None where it is not installed."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec and spec.submodule_search_locations) or ():
        if found := next(iter(sorted(Path(folder).glob(f"*/bin/{name}"))), None):
            return found
    on_path = shutil.which(name)
    return Path(on_path) if on_path else None


def why_unavailable(name: str) -> str | None:
    """Return why a tool cannot be run, or None where it can."""
    if find_tool(name) is not None:
        return None
    return f"{name} is not installed: pip install {PACKAGES[name]}"


def disassembled(ptx: str, architecture: str, name: str = "a program") -> str:
    """Return the SASS of PTX, the instructions of one generation of GPUs, as text.

    Parameters
    ----------
    ptx : str
        The text of a module.
    architecture : str
        The generation: ``"sm_80"``.
    name : str, optional
        Name of the program in messages.

    Raises
    ------
    DeviceUnavailable
        A tool is not installed.
    TargetError
        A tool refuses it: packages of today disassemble code for Turing (sm_75) and later.
    """
    operation = f"disassemble {name} for {architecture}"
    tools = {tool: _tool(tool, operation) for tool in PACKAGES}
    with private_folder() as folder:
        cubin = str(folder / "kernels.cubin")
        assemble = (f"-arch={architecture}", "-lineinfo", "-", "-o", cubin)
        _output(tools["ptxas"], assemble, operation, ptx)
        return _output(tools["nvdisasm"], ("-c", "-g", cubin), operation)


def _tool(name: str, operation: str) -> Path:
    found = find_tool(name)
    if found is None:
        raise DeviceUnavailable(
            operation, "a tool of NVIDIA is missing", because=why_unavailable(name)
        )
    return found


def _output(tool: Path, arguments: Sequence[str], operation: str, text: str = "") -> str:
    """Run a tool that reads a text, and return what it writes."""
    try:
        done = subprocess.run(
            [tool, *arguments],
            input=text,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DeviceUnavailable(
            operation, f"{tool.name} does not run", because=str(error)
        ) from error
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if "fatal" in line or "error" in line]
        raise TargetError(
            operation, f"{tool.name} refuses it", because=(said or [done.stderr])[0].strip()
        )
    return done.stdout
