"""The command line, as a user calls it."""

import json
import subprocess
import sys

import pytest

from dlcompiler.bench import tables
from dlcompiler.bench.contest import Bench
from dlcompiler.bench.document import _rounded
from dlcompiler.bench.results import Result
from dlcompiler.bench.works import parse_work
from dlcompiler.cli import REGISTRY, doctor, main
from dlcompiler.runtime import discovery
from dlcompiler.runtime.opencl import driver


def test_version(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith("dlcompiler ")


def test_every_command_has_help():
    assert all(command.help for command in REGISTRY.values())


def test_doctor_says_what_works(capsys):
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    for subject in (
        "cpu",
        "cache",
        "llvm",
        "leftovers",
        "c",
        "worker",
        "cuda",
        "opencl",
        "gpu",
        "model",
        "notebook",
    ):
        assert f"\n{subject:<10} " in f"\n{text}"
    assert "gpu        simulated: target='gpu'" in text


def test_doctor_says_why_a_device_is_not_here(monkeypatch):
    missing = discovery.Devices(reason="no NVIDIA driver is installed here")
    monkeypatch.setattr(discovery, "devices", lambda language: missing)
    assert dict(doctor.report())["cuda"] == "none: no NVIDIA driver is installed here"


def test_doctor_names_a_device_that_is_here(opencl):
    text = dict(doctor.report())["opencl"]
    assert text == f"{driver().device_name}: kernels of target='opencl' run there"


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
    nbformat = pytest.importorskip("nbformat")  # it takes a second: not while tests are collected
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


@pytest.mark.campaign
def test_tour_asks_before_it_replaces_its_results(tmp_path, capsys):
    book = notebook(tmp_path / "small.ipynb", STEPS, "table")
    output = tmp_path / "out"
    output.mkdir()
    (output / "small.html").write_text("mine")
    assert main(["tour", "--notebook", book, "--output", str(output)]) == 2
    assert "small.html: the file is there already" in capsys.readouterr().err
    assert [path.name for path in output.iterdir()] == ["small.html"]
    options = ["--notebook", book, "--output", str(output), "--overwrite"]
    assert main(["tour", *options]) == 0
    assert "doubled" in (output / "small.html").read_text()


def test_tour_does_not_replace_its_notebook(tmp_path, capsys):
    book = notebook(tmp_path / "small.ipynb", "1")
    before = (tmp_path / "small.ipynb").read_text()
    assert main(["tour", "--notebook", book, "--output", str(tmp_path), "--overwrite"]) == 2
    assert "the data is read from this file" in capsys.readouterr().err
    assert (tmp_path / "small.ipynb").read_text() == before


def test_bench_prints_json(capsys):
    assert main(["bench", "--only", "lowering", "--only", "call", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["version"] == 1
    assert {figure["name"] for figure in data["figures"]} == {
        "lowering a fresh schedule",
        "a call with 3 arrays",
    }
    assert all(figure["values"]["median_s"] > 0 for figure in data["figures"])


@pytest.mark.campaign
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


@pytest.mark.parametrize(
    "options",
    [["gemm:4x4x4"], ["--suite", "tuning"], ["--suite", "intrinsics"], ["--suite", "gemm"]],
)
def test_bench_refuses_a_file_before_it_measures(options, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("dlcompiler.cli.bench._machine", lambda: {"cpu": "one"})
    monkeypatch.setattr(Bench, "measure", None)
    mine = tmp_path / "mine.json"
    mine.write_text("{}")
    assert main(["bench", *options, "--save", str(mine)]) == 2
    error = capsys.readouterr().err
    assert "the file is there already" in error or "bench --save: not a document" in error
    assert mine.read_text() == "{}"
    for path, problem in (("/dev/null", "a device is there"), (tmp_path, "a folder is there")):
        assert main(["bench", *options, "--save", str(path), "--overwrite"]) == 2
        assert problem in capsys.readouterr().err


@pytest.mark.campaign
def test_bench_replaces_a_document_of_works_only_when_told(tmp_path, monkeypatch, capsys):
    result = Result(parse_work("gemm:4x4x4"), "plain", 1, None, "not measured")
    monkeypatch.setattr(Bench, "measure", lambda self, work: iter([result]))
    saved = tmp_path / "saved.json"
    command = ["bench", "gemm:4x4x4", "--save", str(saved)]
    assert [main(command), main(command), main([*command, "--overwrite"])] == [0, 2, 0]
    assert "saved.json: the file is there already" in capsys.readouterr().err
    assert json.loads(saved.read_text())["results"][0]["reason"] == "not measured"


def test_bench_has_no_document_of_figures_to_save(tmp_path, capsys):
    assert main(["bench", "--only", "lowering", "--save", str(tmp_path / "x.json")]) == 2
    assert capsys.readouterr().err.startswith(
        "UserError: bench --save: this run makes no JSON document\n  expected  works or --suite\n"
    )


def test_replay_tables_are_replaced_only_when_told(tmp_path, capsys):
    command = ["bench", "--measure-table", "gemm:64x64x64", "--into", str(tmp_path)]
    table = tables.path_of(tmp_path, tables.subject_of("gemm:64x64x64").name)
    table.write_text("mine")
    assert main(command) == 2
    assert "the file is there already" in capsys.readouterr().err
    assert main([*command, "--overwrite", "--db", str(table)]) == 2
    assert "the data is read from this file" in capsys.readouterr().err
    assert table.read_text() == "mine"


@pytest.mark.campaign
def test_bench_fails_where_a_result_is_wrong(capsys, monkeypatch):
    wrong = Result(parse_work("gemm:4x4x4"), "plain", 1, False, "C[0] is off")
    monkeypatch.setattr(Bench, "measure", lambda self, work: iter([wrong]))
    assert main(["bench", "gemm:4x4x4"]) == 1
    printed = capsys.readouterr()
    assert "WRONG: C[0] is off" in printed.out
    assert "gemm:4x4x4 (plain): C[0] is off" in printed.err


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["gemm:1x2"], "expected  gemm:MxNxK"),
        (["gemm:8x8x8", "--peers", "mkl"], "no such peer"),
        (["gemm:8x8x8", "--threads", "0"], "not a number of threads"),
        (["gemm:8x8x8", "--suite", "gemm"], "works and --suite cannot be given together"),
        (["--page", "nowhere.json"], "cannot be read"),
    ],
)
def test_bench_says_what_it_cannot_measure(arguments, problem, capsys):
    assert main(["bench", *arguments]) == 2
    assert problem in capsys.readouterr().err


def test_a_damaged_document_has_no_page(tmp_path, capsys):
    path = tmp_path / "page.json"
    for text in (
        '{"tables": [], "results": [], "machine": {}}',
        '{"tables": 1, "results": 2, "mach',
    ):
        path.write_text(text + ("" if text.endswith("}") else 'ine": 3}'))
        assert main(["bench", "--page", str(path)]) == 2
        assert "bench --page: the document is damaged, or of" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"nbformat": 4, "cells": 3}', '{"nbformat": "x"}']
)
def test_tour_refuses_what_is_no_notebook(tmp_path, capsys, text):
    path = tmp_path / "bad.ipynb"
    path.write_text(text)
    status = main(["tour", "--notebook", str(path), "--output", str(tmp_path / "out")])
    assert status == 2
    assert capsys.readouterr().err.startswith("UserError: tour: not a notebook\n  got       ")
