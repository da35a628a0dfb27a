"""The command line, as a user calls it."""

import json
import subprocess
import sys

import nbformat
import pytest

from dlcompiler.bench.contest import Bench
from dlcompiler.bench.document import _rounded
from dlcompiler.bench.results import Result
from dlcompiler.bench.works import parse_work
from dlcompiler.cli import REGISTRY, doctor, load, main


def test_version(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith("dlcompiler ")


def test_every_command_has_help():
    assert all(load(name).help for name in REGISTRY)


def test_doctor_says_what_works(capsys):
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    for subject in ("cpu", "cache", "llvm", "c", "worker", "gpu", "model", "notebook"):
        assert f"\n{subject:<10} " in f"\n{text}"
    assert "gpu        none:" in text


def test_doctor_says_that_there_is_no_c_compiler(monkeypatch):
    monkeypatch.setattr(doctor, "c_compiler", lambda: None)
    assert dict(doctor.report())["c"].startswith("no C compiler (cc, gcc or clang)")


def test_module_runs_as_the_command(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "dlcompiler", "--version"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("dlcompiler ")


def test_tour_without_its_notebook_says_where_to_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["tour"]) == 2
    assert "run it from the folder of the checkout" in capsys.readouterr().err


def notebook(path, *cells):
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbformat.write(book, path)
    return str(path)


STEPS = """
import dlcompiler as dlc
from dlcompiler import te
A = te.placeholder((8,), name="A")
B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
table = dlc.StepTable()
table.add("doubled", te.create_schedule(B.op), [A, B], rounds=3)
"""


def test_tour_prints_the_steps_and_writes_both_results(tmp_path, capsys):
    book = notebook(tmp_path / "small.ipynb", STEPS, "table")
    output = tmp_path / "out"
    assert main(["tour", "--notebook", book, "--output", str(output)]) == 0
    text = capsys.readouterr().out
    assert "doubled" in text
    assert "verified" in text
    assert str(output / "small.ipynb") in text
    page = (output / "small.html").read_text()
    assert "doubled" in page
    assert "<script" not in page


def test_tour_reports_a_cell_that_fails_and_keeps_what_ran(tmp_path, capsys):
    book = notebook(tmp_path / "bad.ipynb", "print('ran')", "1 / 0")
    output = tmp_path / "out"
    assert main(["tour", "--notebook", book, "--output", str(output)]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert "ran" in (output / "bad.ipynb").read_text()


def test_bench_prints_json(capsys):
    assert main(["bench", "--only", "lowering", "--only", "call", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["version"] == 1
    assert {figure["name"] for figure in data["figures"]} == {
        "lowering a fresh schedule",
        "a call with 3 arrays",
    }
    assert all(figure["values"]["median_s"] > 0 for figure in data["figures"])


def test_bench_measures_works_beside_peers(capsys, tmp_path):
    saved = tmp_path / "bench" / "results.json"
    options = ["--peers", "numpy", "--threads", "1", "--seconds", "0.01", "--save", str(saved)]
    assert main(["bench", "gemm:16x8x4", *options, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert json.loads(saved.read_text()) == _rounded(document)
    (row,) = [row for row in document["results"] if row["row"] == "plain"]
    assert row["work"] == "gemm:16x8x4"
    assert row["verified"] is True
    assert row["peers"]["numpy"] > 0
    assert document["peer_versions"].keys() == {"numpy"}
    assert "FMA peak, float32" in document["machine"]


def test_bench_fails_where_a_result_is_wrong(capsys, monkeypatch):
    wrong = Result(parse_work("gemm:4x4x4"), "plain", 1, False, "C[0] is off")
    monkeypatch.setattr(Bench, "measure", lambda self, work: iter([wrong]))
    assert main(["bench", "gemm:4x4x4"]) == 1
    printed = capsys.readouterr()
    assert "WRONG: C[0] is off" in printed.out
    assert "gemm:4x4x4 (plain): C[0] is off" in printed.err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["gemm:1x2"], "expected  gemm:MxNxK"),
        (["gemm:8x8x8", "--peers", "mkl"], "no such peer"),
        (["gemm:8x8x8", "--threads", "0"], "not a number of threads"),
        (["gemm:8x8x8", "--suite", "gemm"], "works and a suite at once"),
        (["--page", "nowhere.json"], "cannot be read"),
    ],
)
def test_bench_says_what_it_cannot_measure(arguments, problem, capsys):
    assert main(["bench", *arguments]) == 2
    assert problem in capsys.readouterr().err
