import numpy as np
import pytest

from dlcompiler.measurement import RemoteKernel, numpy_counterpart
from dlcompiler.measurement.worker import EINSUM
from dlcompiler.pipeline import emit_source
from dlcompiler.runtime.workers import Worker
from dlcompiler.schedule import create_schedule
from dlcompiler.target import resolve
from dlcompiler.te import evaluate
from dlcompiler.te.notation.program import read_program


def args_of(text):
    return list(read_program(text).args)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("C[i, j] += A[i, k] * B[k, j]\nA: [4, 8]\nB: [8, 2]", "numpy.matmul"),
        ("C[i, j] += A[k, i] * B[k, j]\nA: [8, 4]\nB: [8, 2]", "numpy.einsum ca,cb->ab"),
        ("C[i, j] += B[k, j] * A[i, k]\nB: [8, 2]\nA: [4, 8]", "numpy.einsum cb,ac->ab"),
        ("C[i] += A[i, k] * B[k]\nA: [4, 8]\nB: [8]", "numpy.einsum ab,b->a"),
        ("C[i, j] = A[i] * B[j]\nA: [4]\nB: [8]", "numpy.einsum a,b->ab"),
        ("C[i, j] = A[j, i]\nA: [4, 8]", "numpy.einsum ba->ab"),
        ("C[i, j] = A[i, j] + B[i, j]\nA: [4, 8]\nB: [4, 8]", None),
        ("C[i] += A[i + k]\nA: [8]\nk: 3\ni: 6", None),
        ("C[i] = A[i]\nA: [8]\ni: 6", None),
        ("C[i] = A[i, i]\nA: [8, 8]", None),
        ("C[i] = A[i] * A[i]\nA: [8]", None),
        ("C[i] = max(A[i, k], axis=k)\nA: [8, 8]", None),
        ("D[i] = A[i]\nC[i] = D[i] * B[i]\nA: [8]\nB: [8]", None),
        ("C[i] = A[i]\nA: [n]", None),
    ],
)
def test_which_function_it_is(text, name):
    assert numpy_counterpart(args_of(text)) == name


@pytest.mark.parametrize("seed", range(3))
def test_numpy_computes_the_same(seed):
    for text in (
        "C[i, j] += A[k, i] * B[k, j]\nA: float64[8, 4]\nB: float64[8, 2]",
        "C[j] += A[i, k, j] * B[k]\nA: float64[5, 3, 2]\nB: float64[3]",
    ):
        args = args_of(text)
        rng = np.random.default_rng(seed)
        arrays = {tensor: rng.uniform(size=tensor.static_shape) for tensor in args[:-1]}
        subscripts = numpy_counterpart(args).removeprefix(EINSUM)
        got = np.einsum(subscripts, *arrays.values())
        np.testing.assert_allclose(got, evaluate(args[-1], arrays))


def test_it_is_measured_beside_a_kernel():
    args = args_of("C[i, j] += A[k, i] * B[k, j]\nA: [64, 64]\nB: [64, 64]")
    target = resolve("cpu")
    source, _ = emit_source(create_schedule(args[-1].op), args, target, "main")
    worker = Worker()
    kernel = RemoteKernel(source, target, worker=worker)
    paired = kernel.pair(numpy_counterpart(args), limits={"rounds": 3}, timeout_s=60)
    assert paired.a.median_s > 0
    worker.close()
