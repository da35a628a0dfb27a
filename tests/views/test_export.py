import json
import subprocess
import sys

import pytest

from dlcompiler import te
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule
from dlcompiler.schedule.saved import Saved
from dlcompiler.views.export import notebook_text, python_text

HOSTILE = "</script>'\"\n<img src=x onerror=alert(1)>"


def run(code):
    """Return what a program prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert not done.returncode, f"{code}\n{done.stderr}"
    return done.stdout


def test_python_runs_by_itself_to_the_same_program(blocked, tensors):
    saved = Saved(blocked, tuple(tensors), "cpu", "matmul")
    assert run(python_text(saved)).strip() == str(lower(blocked, tensors, name="matmul")).strip()


def test_python_with_names_that_are_no_variables():
    A = te.placeholder((8, 8), name="A.x")
    dlc = te.compute((8, 8), lambda s, Explorer: A[s, Explorer] + 1, name="dlc")
    k = te.reduce_axis((0, 8), name="kernel")
    s = te.compute((8,), lambda i: te.sum(dlc[i, k], axis=k), name="s")
    schedule = create_schedule(s.op)
    schedule[dlc].compute_at(schedule[s], s.op.axis[0])
    schedule[s].split(k, 2)
    schedule.describe("name'", 'note"\n')
    text = run(python_text(Saved(schedule, (A, s), "cpu", "main")))
    assert text.replace("A_x", "A.x").strip() == str(lower(schedule, [A, s])).strip()


def test_a_notebook_is_valid_and_its_cells_run(blocked, tensors):
    nbformat = pytest.importorskip("nbformat")
    blocked.describe("blocked", HOSTILE)
    text = notebook_text(Saved(blocked, tuple(tensors), "cpu", HOSTILE))
    book = nbformat.reads(text, as_version=4)
    nbformat.validate(book, relax_add_props=False)
    assert json.loads(text)["nbformat_minor"] == 5
    assert not any("<" in cell.source for cell in book.cells if cell.cell_type == "markdown")
    sources = [cell.source for cell in book.cells if cell.cell_type == "code"]
    assert "Explorer(s, [A, B, C]" in sources[-1]
    printed = run("\n".join(sources[:3]).replace(f"name={HOSTILE!r}", "name='matmul'"))
    assert printed.strip() == str(lower(blocked, tensors, name="matmul")).strip()
