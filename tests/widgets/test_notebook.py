"""Schedules and ``%%explore`` in IPython."""

import subprocess
import sys

import pytest

from dlcompiler.errors import ExpressionError, UserError
from tests.widgets.test_live_page import matmul

pytest.importorskip("dlcompiler_widgets")
import dlcompiler_widgets
from dlcompiler_widgets import Explorer
from dlcompiler_widgets.notebook import explore, workbench_of
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

VIEW = "application/vnd.jupyter.widget-view+json"
CELL = "C[i, j] += A[i, k] * B[k, j]\nA: float32[8, 16]\nB: float32[16, 4]\n"


@pytest.fixture
def shell():
    """An IPython that takes itself for the kernel of a notebook."""
    shell = InteractiveShell.instance()
    shell.kernel = object()
    shell.extension_manager.load_extension("dlcompiler_widgets")
    yield shell
    shell.extension_manager.unload_extension("dlcompiler_widgets")
    shell.history_manager.end_session()
    InteractiveShell.clear_instance()


def shown(shell, value):
    """The outputs that a value has as the last line of a cell."""
    with capture_output() as captured:
        assert shell.display_formatter.format(value) == ({}, {})
    return [output.data for output in captured.outputs]


def test_a_schedule_is_shown_as_its_workbench_each_time_the_same(shell):
    schedule, args = matmul()
    first, _ = shown(shell, schedule)
    schedule[args[2]].parallel(args[2].op.axis[0])
    again, still = shown(shell, schedule)
    assert first[VIEW]["model_id"] == again[VIEW]["model_id"]
    assert again["text/plain"].startswith("Explorer(main on cpu: 1 stage, 3 loops (1 parallel)")
    assert "parallel" in still["text/html"]
    assert "<script" not in still["text/html"]
    workbench_of(schedule).close()


def test_the_workbench_that_is_open_is_shown(shell):
    schedule, args = matmul()
    explorer = Explorer(schedule, args, name="matmul")
    live, _ = shown(shell, schedule)
    assert live[VIEW]["model_id"] == explorer.model_id
    explorer.close()
    assert workbench_of(schedule) is not explorer
    workbench_of(schedule).close()


def test_a_fork_has_a_workbench_of_its_own(shell):
    schedule, _ = matmul()
    fork = schedule.fork("other")
    assert workbench_of(schedule) is not workbench_of(fork)
    workbench_of(schedule).close()
    workbench_of(fork).close()


def test_without_the_extension_the_static_picture_stays(shell):
    schedule, _ = matmul()
    shell.extension_manager.unload_extension("dlcompiler_widgets")
    data, _ = shell.display_formatter.format(schedule)
    assert VIEW not in data
    assert data["text/html"] == schedule._repr_html_()
    shell.extension_manager.load_extension("dlcompiler_widgets")


def test_in_a_terminal_the_schedule_shows_itself(shell):
    schedule, _ = matmul()
    del shell.kernel
    data, _ = shell.display_formatter.format(schedule)
    assert data["text/html"] == schedule._repr_html_()
    assert not schedule.listeners


def test_a_cell_of_notation(shell):
    result = shell.run_cell(f"%%explore target=aarch64 name=small level=learn\n{CELL}")
    explorer = result.result
    assert repr(explorer) == "Explorer(small on aarch64: 1 stage, 3 loops; 0 steps)"
    assert explorer.view["bar"]["layout"]["level"] == "learn"
    explorer.close()


def test_a_cell_with_a_mistake_says_where_in_a_few_lines(shell, capsys):
    result = shell.run_cell("%%explore\nC[i] = A[i, j]\nA: [4, 4]\n")
    assert isinstance(result.error_in_exec, ExpressionError)
    shown = capsys.readouterr().out
    assert "^" in shown
    assert "the axis j is not on the left" in shown
    assert "notebook.py" not in shown


@pytest.mark.parametrize("line", ["target", "colour=red", "target=abacus", "level=none"])
def test_options_that_are_none(line):
    with pytest.raises(UserError):
        explore(line, CELL)


@pytest.mark.campaign
def test_outside_of_a_kernel_importing_changes_nothing():
    assert dlcompiler_widgets.load_ipython_extension
    code = (
        "import sys, dlcompiler_widgets\n"
        "from dlcompiler import te\n"
        "A = te.placeholder((8,), name='A')\n"
        "s = te.create_schedule(te.compute((8,), lambda i: A[i], name='B').op)\n"
        "from IPython import get_ipython\n"
        "assert get_ipython() is None and not s.listeners\n"
        "s._repr_html_(); repr(s)\n"
        "assert not s.listeners\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_in_a_kernel():
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    cells = [
        "import dlcompiler_widgets\nfrom dlcompiler import te\n"
        "A = te.placeholder((8,), name='A')\n"
        "B = te.compute((8,), lambda i: A[i] * 2.0, name='B')\ns = te.create_schedule(B.op)\ns",
        "s[B].parallel(B.op.axis[0])\ns",
        f"%%explore\n{CELL}",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(book, timeout=60, kernel_name="python3").execute()
    first, second, third = ([out["data"] for out in cell.outputs[-2:]] for cell in book.cells)
    assert first[0][VIEW]["model_id"] == second[0][VIEW]["model_id"]
    assert first[1]["text/html"] == second[1]["text/html"], "the first follows the schedule"
    assert "parallel" in second[1]["text/html"]
    assert VIEW in third[0]
