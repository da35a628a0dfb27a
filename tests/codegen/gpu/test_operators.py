"""The code of GPU schedules against NumPy: CUDA C as C++, and PTX with emulated instructions.

The simulator runs the loops of a program. It does not see what code makes of them: elements of
tensor cores, shuffles, asynchronous copies, vectors.
"""

import numpy as np
import pytest

from dlcompiler import dtypes, ops
from dlcompiler.measurement.equality import differences
from dlcompiler.pipeline import build
from dlcompiler.target import resolve
from tests.codegen.gpu import cuda_on_cpu, emulated
from tests.ops.gpu.test_awkward import CONVOLUTIONS, ROWS

HALVES = {"m": 17, "n": 24, "k": 32, "dtype": "float16", "epilogue": "bias+relu"}
ON_TENSOR_CORES = [
    ("matmul", HALVES),
    ("matmul", {"m": 33, "n": 19, "k": 35, "dtype": "bfloat16", "layout": "NT"}),
    ("matmul", {"m": 33, "n": 40, "k": 64, "dtype": "int8"}),
    ("batch_matmul", {"batch": 2, "m": 16, "n": 8, "k": 48, "dtype": "float16"}),
]
OTHERS = [
    ("matmul", {"m": 37, "n": 67, "k": 31}),
    ("dense", {"m": 1, "n": 251, "k": 127, "epilogue": "bias+relu"}),
    *CONVOLUTIONS[::4],
    *ROWS[::3],
]


def check(kernel, operator, workload, args, run):
    """Run a kernel on the inputs of the reference, and compare its results."""
    reference = operator.reference(workload, 1)
    arrays = {}
    for arg in args:
        array = arrays[arg.name] = np.empty(arg.static_shape, dtypes.to_numpy(arg.dtype))
        array[...] = np.nan if dtypes.is_float(arg.dtype) else 77
        if arg.name in reference.inputs:
            array[...] = reference.inputs[arg.name]
    run([arrays[arg.name] for arg in args])
    for out in (arg for arg in args if arg.name in reference.expected):
        expected, bound = (values[out.name] for values in (reference.expected, reference.bound))
        found = differences(arrays[out.name], expected, bound).first
        assert found is None, f"{workload}: {found}"


@pytest.mark.campaign
@pytest.mark.parametrize("gpu", ["v100", "a100"])
@pytest.mark.parametrize(("name", "parameters"), [*ON_TENSOR_CORES, *OTHERS], ids=str)
def test_code_computes_what_numpy_does(name, parameters, gpu, tmp_path, folder):
    operator, target = ops.operator(name), resolve(gpu)
    workload = operator.workload(**parameters)
    cfg = operator.default_config(workload, target)
    s, args = operator.template(workload, target, cfg)
    kernel = build(s, args, target)
    text = kernel.source("cuda")

    def in_ptx(arrays):
        emulated.run(kernel.program, arrays, folder, target=target)

    check(kernel, operator, workload, args, in_ptx)
    if len(kernel.program.launches) == 1:
        check(kernel, operator, workload, args, lambda a: cuda_on_cpu.run(text, a, tmp_path))
    if (name, parameters) in ON_TENSOR_CORES and gpu == "a100":
        assert "mma.sync" in text
