"""The suite of kernels on a simulated GPU, on small ones."""

import functools
import json

import pytest

from dlcompiler.bench import gpu
from dlcompiler.bench.gpu_templates import gpu_gemm
from dlcompiler.bench.programs import tiled_gpu_gemm
from dlcompiler.cli import main
from dlcompiler.errors import TargetError


def test_rows_of_small_kernels(monkeypatch):
    monkeypatch.setattr("dlcompiler.runtime.ptxas.why_unavailable", lambda: "not here")
    works = {
        "gemm": functools.partial(tiled_gpu_gemm, 32),
        "conv2d": functools.partial(gpu.convolution, 8, 8),
        "row sums": functools.partial(gpu.row_sums, 4, 64, 32),
    }
    said = []
    document = gpu.run_suite(said.append, works, rounds=1)
    assert document["failed"] == {}
    assert json.loads(json.dumps(document)) == document
    assert [row["work"] for row in document["gpu"]] == list(works)
    for row in document["gpu"]:
        assert min(row["compile_s"], row["simulate_s"], row["count_s"]) > 0
        (kernel,) = row["report"]["kernels"]
        assert kernel["is_exact"]
        assert kernel["occupancy"]["limited_by"]
    assert "sectors a request, conflict degree" in said[0]
    (gemm,) = document["gpu"][0]["report"]["kernels"]
    assert gemm["instructions"]["float32 fma"]["most"]["lanes"] == 32**3


def test_a_space_is_counted_in_batches():
    parameters = {"n": 8, "m": 8, "k": 4}
    row = gpu.count_space("gemm", gpu_gemm, parameters, batches=2, size=20)
    assert row.points == 20 * 20 * 3 * 2
    assert len(row.rates_per_s) == 2
    assert row.alone == 0
    assert "2,400 configs: " in str(row)


@pytest.mark.campaign
def test_a_kernel_that_fails_does_not_end_the_suite(monkeypatch, capsys):
    def broken():
        raise TargetError("make a kernel", "nothing fits")

    works = {"bad": broken, "row sums": functools.partial(gpu.row_sums, 2, 8, 4)}
    monkeypatch.setattr("dlcompiler.runtime.ptxas.why_unavailable", lambda: "not here")
    monkeypatch.setattr(gpu, "run_suite", functools.partial(gpu.run_suite, works=works, rounds=1))
    assert main(["bench", "--suite", "gpu", "--json"]) == 1
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert [row["work"] for row in document["gpu"]] == ["row sums"]
    assert document["failed"] == {"bad": "TargetError: make a kernel: nothing fits"}
