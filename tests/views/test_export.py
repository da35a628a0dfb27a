import ast
import builtins
import json
import keyword
import re
import subprocess
import sys

import pytest

from dlcompiler import te
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule
from dlcompiler.schedule.saved.document import Saved
from dlcompiler.views.code.export import notebook_text, python_text

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


NAMES = [
    ("print", "range", "te", "dlc"),
    ("s", "te", "print", "lower"),
    ("if", "None", "lambda_", "pass"),
    ("a.b", "a_b", "a_b_", "a.b_"),
    ("µ", "μ", "ﬁ", "fi"),
    ("ª", "º", "é", "𝐤"),
    ("__name__", "__builtins__", "__doc__", "_"),
    ("print_1", "print", "print_", "print.1"),
    ("float32", "max", "sum", "exp"),
    ("A", "A.local", "ax0", "A_local"),
    ("Explorer", "kernel", "dlcompiler", "type"),
]


def awkward(first, second, third, fourth):
    """A schedule, its tensors and its result, where everything has an awkward name."""
    n = te.var(fourth)
    A = te.placeholder((n, 8), name=first)
    k = te.reduce_axis((0, 8), name=third)
    B = te.compute((n, 8), lambda i, j: A[i, j] * 2.0, name=third)
    C = te.compute((n,), lambda i: te.sum(B[i, k], axis=k), name=second)
    schedule = create_schedule(C.op)
    schedule[B].compute_at(schedule[C], schedule[C].op.axis[0])
    local = schedule.cache_read(A, "local", [B])
    schedule[local].compute_at(schedule[C], schedule[C].op.axis[0])
    schedule[C].split(k, 4)
    return schedule, [n, A, C]


def numbered(text):
    """A text with a number for each different word, so that only the program counts."""
    words = {}

    def number(found):
        return f"w{words.setdefault(found[0], len(words))}"

    return re.sub(r"[^\W\d][\w.]*", number, text.replace(": float32[", ": ["))


@pytest.mark.campaign
@pytest.mark.parametrize("names", NAMES, ids=" ".join)
def test_python_shadows_nothing_and_runs_to_the_same_program(names):
    schedule, args = awkward(*names)
    text = python_text(Saved(schedule, tuple(args[1:]), "cpu", "main"))
    assert not assigned(text) & {*dir(builtins), *keyword.kwlist}
    assert numbered(run(text).strip()) == numbered(str(lower(schedule, args[1:])).strip())


@pytest.mark.parametrize("names", NAMES, ids=" ".join)
def test_a_trace_shadows_nothing_and_runs_to_the_same_program(names):
    schedule, args = awkward(*names)
    text = schedule.trace.to_python()
    assert not assigned(text) & {*dir(builtins), *keyword.kwlist, "te"}
    stages = {stage.name: stage.tensor for stage in schedule.history.history.root.state.stages}
    space = {**{name: stages[name] for name in stages if name.isidentifier()}, "te": te}
    for variable, name in re.findall(r"^# (\w+) is the tensor '(.*)'$", text, re.MULTILINE):
        space[variable] = stages[name]
    exec(text, space)
    assert str(lower(space["s"], args[1:])) == str(lower(schedule, args[1:]))


def assigned(text):
    return {node.id for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}  # fmt: skip
