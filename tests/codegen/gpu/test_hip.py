"""HIP compiles for a GPU of AMD, against declarations of what the generated code uses of it."""

import shutil
import subprocess
from pathlib import Path

import pytest

import dlcompiler as dlc
from dlcompiler import te
from tests.codegen.gpu.test_assembly import of_one, vectors
from tests.codegen.gpu.test_compiled import PROGRAMS, gather

HERE = Path(__file__).parent
KERNELS = {
    **{name: lambda make=make: dlc.build(*make(), target="gpu") for name, make in PROGRAMS.items()},
    "failed check": lambda: dlc.build(*gather(), target="gpu"),
    "float32 vectors": lambda: vectors(64, 4)[0],
    "int8 vectors": lambda: vectors(64, 4, "int8")[0],
    "float16": lambda: of_one("float16", te.exp)[0],
    "float64 to bfloat16": lambda: of_one("float64", lambda x: x.astype("bfloat16"))[0],
    "int64": lambda: of_one("int64", lambda x: te.floordiv(x, x - 2))[0],
}


@pytest.fixture(scope="session")
def clang():
    """Clang, if it writes code for GPUs of AMD."""
    found = shutil.which("clang")
    targets = found and subprocess.run([found, "--print-targets"], capture_output=True, text=True)
    if not targets or "amdgcn" not in targets.stdout:
        pytest.skip("no clang for GPUs of AMD")
    options = ["-x", "hip", "--cuda-device-only", "-nogpulib", "-nogpuinc", "-std=c++17"]
    flags = ["-Wall", "-Werror", "-Wno-unused-variable", "-Wno-undefined-internal"]
    return [found, *options, *flags, "--offload-arch=gfx90a", f"-I{HERE / 'declarations'}"]


@pytest.mark.parametrize("kernel", KERNELS)
def test_hip_compiles(kernel, clang, tmp_path):
    path = tmp_path / "kernels.hip"
    path.write_text(KERNELS[kernel]().source("hip"))
    command = [*clang, "-S", path, "-o", tmp_path / "kernels.s"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert ".amdhsa_kernel main_kernel0" in (tmp_path / "kernels.s").read_text()
