"""Judging predicted times by measured ones, on small files made by hand."""

import gzip
import json
from pathlib import Path

import pytest

from dlcompiler.bench import gpu_model
from dlcompiler.bench.gpu_model import read_space, score_of
from dlcompiler.bench.gpu_model_works import KERNELS
from dlcompiler.cli import main
from dlcompiler.errors import UserError
from dlcompiler.target import resolve

CONVOLUTION = KERNELS["convolution"]
GEMM = dict(zip(KERNELS["gemm"].parameters, (64, 64, 32, 8, 16, 16, 8, 2, 8, 2), strict=False))


def table(rows, names=(*CONVOLUTION.parameters, "read_only", "time_ms")):
    return "\n".join([",".join(names), *(",".join(map(str, row)) for row in rows)]) + "\n"


#: Each a block of 32 × 4 threads with another tile, times roughly as on an RTX A6000.
ROWS = [(32, 4, x, y, 0, 1, 0, 2.5 - 0.1 * (x * 4 + y)) for x in (1, 2, 3) for y in (1, 2, 3, 4)]


def test_a_file_made_by_hand_is_judged(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("dlcompiler.bench.gpu_model_works.IMAGE", 256)
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
    assert gpu_model._predicted_ms(KERNELS["gemm"], row, resolve("rtx-3090")) > 5


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
    assert main(["bench", "--suite", "gpu-model"]) == 2
    assert "expected  --data FOLDER" in capsys.readouterr().err
