"""The command line, as a user calls it."""

import json
import subprocess
import sys

import nbformat
import pytest

from dlcompiler.cli import REGISTRY, load, main


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
    for subject in ("cpu", "cache", "llvm", "worker", "gpu", "model", "notebook"):
        assert f"\n{subject:<10} " in f"\n{text}"
    assert "gpu        none:" in text


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
