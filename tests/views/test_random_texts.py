"""The texts of random schedules: what their lines say of loops is there."""

import pytest

from dlcompiler.errors import DLCompilerError
from dlcompiler.pipeline import emit_source
from dlcompiler.pipeline.checks import default_args
from dlcompiler.views import loop_tree
from dlcompiler.views.code.code_text import code_text
from dlcompiler.views.code.llvm_text import llvm_code
from dlcompiler.views.code.notation_view import notation_lines
from dlcompiler.views.code.python_view import python_view
from dlcompiler.views.loops.line_keys import source_lines
from tests.fuzz.checks import case_of


def keys_of(lines):
    found = {key for line in lines for key in (*line["keys"], *line.get("within", ()))}
    return found | {key for line in lines for t in line["tokens"] for key in t.get("keys", ())}


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(20))
def test_keys_of_random_schedules(seed):
    s = case_of(f"texts {seed}").schedule()
    rows = {row["key"] for row in loop_tree(s)["rows"] if row["type"] != "statement"}
    known = rows | {stage.name for stage in s.state.stages}
    loops = {key for key in rows if "/" in key}
    notation, python = notation_lines(s), python_view(s)
    assert loops <= keys_of(notation) <= known
    assert keys_of(python) <= known
    assert "".join(line["text"] + "\n" for line in python) == s.trace.to_python()
    try:
        source, func = emit_source(s, default_args(s))
    except DLCompilerError:  # an obligation is open
        return
    left = {key for line in source_lines(func) for key in line.keys}
    assert left <= known
    code = code_text(llvm_code(source, func))
    assert keys_of(code["lines"]) <= known
    if not code["left_out"]:
        assert left & loops <= keys_of(code["lines"])
