"""Judging predicted times by measured ones, on small files made by hand."""

import gzip
import json
from pathlib import Path

import pytest

from dlcompiler.bench import gpu_ladders, gpu_model, gpu_model_works
from dlcompiler.bench.gpu_model import read_space, score_of
from dlcompiler.bench.gpu_model_works import KERNELS
from dlcompiler.cli import main
from dlcompiler.errors import UserError
from dlcompiler.ir import print_func
from dlcompiler.simulate.gpu import Given
from dlcompiler.simulate.gpu.time_values import bodies_of
from dlcompiler.target import resolve

CONVOLUTION = KERNELS["convolution"]
GEMM = dict(zip(KERNELS["gemm"].parameters, (64, 64, 32, 8, 16, 16, 8, 2, 8, 2), strict=False))


def table(rows, names=(*CONVOLUTION.parameters, "read_only", "time_ms")):
    return "\n".join([",".join(names), *(",".join(map(str, row)) for row in rows)]) + "\n"


#: Each a block of 32 × 4 threads with another tile, times roughly as on an RTX A6000.
ROWS = [(32, 4, x, y, 0, 1, 0, 2.5 - 0.1 * (x * 4 + y)) for x in (1, 2, 3) for y in (1, 2, 3, 4)]


def test_a_file_made_by_hand_is_judged(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("dlcompiler.bench.gpu_model_works.IMAGE", 256)
    monkeypatch.setattr(gpu_model, "LADDERS", ())
    failed, direct = (32, 4, 1, 1, 0, 1, 0, ""), (32, 4, 1, 1, 0, 0, 0, 2.0)
    (tmp_path / "convolution_rtx-a6000.csv").write_text(table([*ROWS[:11], failed, direct]))
    (tmp_path / "convolution_rtx-9999.csv").write_text(table(ROWS))
    (tmp_path / "README.md").write_text("other files are left alone")
    assert main(["bench", "--suite", "gpu-model", "--data", str(tmp_path), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    (result,) = document["results"]
    assert (result["file"], result["rows"], result["refused"]) == (
        "convolution_rtx-a6000.csv", 11, 0,
    )  # fmt: skip
    assert {"spearman", "regret10", "geomean_error"} < result.keys()
    assert "rtx-9999" in document["failed"]["convolution_rtx-9999.csv"]


def test_the_score_of_known_pairs():
    exact = score_of("f", [(float(n), float(n)) for n in range(1, 21)])
    assert (exact.spearman, exact.regret10, exact.geomean_error) == (pytest.approx(1), 1, 1)
    doubled = score_of("f", [(2.0 * n, float(n)) for n in range(1, 21)])
    assert (doubled.spearman, doubled.geomean_error) == (pytest.approx(1), pytest.approx(2))
    reverse = score_of("f", [(1.0 / n, float(n)) for n in range(1, 21)])
    assert (reverse.spearman, reverse.regret10) == (pytest.approx(-1), 11)
    ties = score_of("f", [(1.0, float(n)) for n in range(1, 21)])
    assert ties.spearman == 0


@pytest.mark.parametrize("is_shared", [0, 1])
def test_schedules_have_the_parameters_of_a_row(is_shared):
    row = {**GEMM, "SA": is_shared, "SB": is_shared}
    program = gpu_model.lower_program(*KERNELS["gemm"].make(row), resolve("rtx-3090"))
    (launch,) = program.launches
    needs = gpu_model.estimate_of(launch)
    assert needs.shared_bytes == is_shared * 4 * 32 * (64 + 64)
    times = gpu_model.predict_row(KERNELS["gemm"], row, ("rtx-3090", "titan-rtx"))
    assert 5 < times["rtx-3090"] < times["titan-rtx"] < 100


def test_a_row_that_is_too_large_for_one_gpu_has_a_time_on_another():
    row = {**GEMM, "MWG": 128, "NWG": 128, "KWG": 128, "MDIMC": 16, "NDIMC": 16, "SA": 1, "SB": 1}
    times = gpu_model.predict_row(KERNELS["gemm"], row, ("a100", "titan-rtx"))
    assert times["a100"] > 1
    assert times["titan-rtx"] is None


@pytest.mark.campaign
def test_a_row_is_the_same_program_as_a_branch_of_a_history_and_alone():
    def kernel(**more):
        made = KERNELS["gemm"].make({**GEMM, "SA": 1, "SB": 1, **more})
        (launch,) = gpu_model.lower_program(*made, "gpu").launches
        return print_func(launch.kernel).text

    kernel(VWN=1)
    branch = kernel()
    gpu_model_works._products.cache_clear()
    assert kernel() == branch


@pytest.mark.parametrize("tile", [1, 3])
def test_only_a_tile_that_reaches_beyond_the_image_is_guarded(tile, monkeypatch):
    monkeypatch.setattr("dlcompiler.bench.gpu_model_works.IMAGE", 128)
    row = dict(zip(CONVOLUTION.parameters, (32, 4, tile, 1, 0, 1), strict=True))
    (launch,) = gpu_model.lower_program(*CONVOLUTION.make(row), "gpu").launches
    (body,) = [
        body for _, read in gpu_model.counted_of(launch, resolve("gpu"), Given()).phases
        for body in bodies_of(read)
    ]  # fmt: skip
    assert body.is_guarded == (tile == 3)
    assert (body.sums, body.loads) == (225 * tile, 225 * tile + 225)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "a column is missing"),
        (table([*ROWS[:2], (32, 4, "x", 1, 0, 1, 0, 1.0)]), "line 4 is not a row of numbers"),
        (table([(32, 4, 1, 1, 0, 1, 0, "-1.0")]), "line 2 is not a row of numbers"),
        (table([(32, 4, 1)]), "line 2 is not a row of numbers"),
        ("", "not a table"),
    ],
    ids=["columns", "parameter", "time", "short", "empty"],
)
def test_a_damaged_file_is_refused(tmp_path, text, message):
    path = Path(tmp_path / "convolution_a100.csv.gz")
    path.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(UserError, match=message):
        read_space(path, CONVOLUTION)


def test_a_folder_without_files_is_refused(tmp_path, capsys):
    assert main(["bench", "--suite", "gpu-model", "--data", str(tmp_path)]) == 2
    printed = capsys.readouterr().err
    assert "no measured search space" in printed
    assert "KERNEL_TARGET.csv" in printed


def test_without_files_there_are_the_ladders(monkeypatch, capsys):
    monkeypatch.setattr(gpu_model, "LADDERS", (gpu_ladders.MALI,))
    assert main(["bench", "--suite", "gpu-model", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (ladder,) = document["ladders"]
    assert (ladder["target"], document["results"]) == ("mali-t860", [])
    assert [rung["name"] for rung in ladder["rungs"]] == ["bound", "unrolled", "vectorized"]
    assert main(["bench", "--suite", "gpu-model"]) == 0
    printed = capsys.readouterr().out
    assert "bound" in printed
    assert "published   5.62 s, predicted" in printed
