"""docs/WALKTHROUGH.md walks a matrix product through every stage: what it shows is what happens."""

import re
import textwrap
from pathlib import Path

import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.schedule import infer_bounds

PAGE = Path(__file__).parents[2] / "docs" / "WALKTHROUGH.md"
BEGIN, END = "<!-- walk: written by `make golden` -->\n", "<!-- end of the walk -->\n"

EXPRESSION = """\
A, B = te.placeholder((6, 8), name="A"), te.placeholder((8, 20), name="B")
k = te.reduce_axis((0, 8), name="k")
C = te.compute((6, 20), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
"""
NOTES = {
    "loop nests": "`lowering/nest.py` builds a loop for each leaf, the initialisation where the "
    "first reduction loop begins, and each guard at the outermost loop that binds all of its "
    "variables. The verifier and the race analysis look at this program.",
    "simplify": "Index arithmetic takes its affine form; conditions that are certain go away.",
    "partition": "The loop that holds the guard is cut: in the main part it holds for certain.",
    "vectorize": "A vectorized loop becomes operations on vectors, its variable a ramp (`: +8`).",
    "simplify unrolled": "What the copies left behind is folded; these lines change:",
}


def _schedule():
    A, B = te.placeholder((6, 8), name="A"), te.placeholder((8, 20), name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((6, 20), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    jo, ji = s[C].split(j, factor=8)
    s[C].reorder(jo, i, k, ji)
    s[C].vectorize(ji)
    s[C].parallel(jo)
    return s, [A, B, C]


def _walk() -> str:
    s, args = _schedule()
    parts = [
        "**Expression** (`te`). A graph of operations; nothing is said of loops.",
        _block("python", EXPRESSION),
        "**Schedule** (`schedule`). Four steps, each checked, each leading to a new immutable "
        "state; `s.trace.to_python()` writes them:",
        _block("python", s.trace.to_python()),
        "**Bounds** (`schedule/inference/bounds.py`). How the axes follow from the loops, and what "
        "must be guarded:",
        _block("", _bounds(s)),
    ]
    unchanged: list[str] = []

    def observe(change):
        if change.before is change.after:
            unchanged.append(change.name)
            return
        note = NOTES.get(change.name, "")
        shown = _program(change.before, change.after)
        parts.extend((f"**{change.name.capitalize()}.** {note}", _block("", shown)))

    dlc.lower(s, args, name="matmul", observers=[observe])
    parts.append(
        f"The passes {', '.join(f'*{name}*' for name in unchanged)} found nothing to do here."
    )
    parts += [
        "**LLVM text** (`codegen/llvm`). The inner loop of the main part, without addresses; each "
        "instruction carries the line of the program that it belongs to:",
        _block("llvm", _inner_loop(dlc.build(s, args, "x86-64-avx2", "matmul").source())),
        "**Machine code** (`runtime/llvm.py`). LLVM optimises the text for the target and links "
        "it; `runtime/function.py` checks the arrays of a call and enters it. `verify` compares "
        "the result with `te.evaluate`, and runs the loop IR in the interpreter.",
    ]
    filled = (part if part.startswith("```") else textwrap.fill(part, 100) for part in parts)
    return "\n\n".join(filled) + "\n\n"


def _program(before, after) -> str:
    """Return a program; where few lines are new, only these."""
    lines = str(after).splitlines()
    if before is None or len(old := str(before).splitlines()) != len(lines):
        return str(after)
    return "\n".join(new for line, new in zip(old, lines, strict=True) if line != new)


def _block(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"


def _bounds(s) -> str:
    stage = s.state.stage("C")
    bounds = infer_bounds(s.state).stages["C"]
    loops = ", ".join(f"{stage.paths[leaf]} < {bounds.extents[leaf]}" for leaf in stage.leaves)
    axes = ", ".join(f"{axis.name} = {bounds.values[axis]}" for axis in stage.op.axis)
    return f"loops   {loops}\naxes    {axes}\nguards  {', '.join(map(str, bounds.guards))}"


def _inner_loop(text: str) -> str:
    found = re.search(r"^k\.loop:\n(.*?br i1[^\n]*)", text, flags=re.DOTALL | re.MULTILINE)
    lines = found.group(1).splitlines()
    return "\n".join(["k.loop:", *(line for line in lines if re.search("phi|float>|br i1", line))])


def test_the_walk_is_what_happens(request):
    head, rest = PAGE.read_text().split(BEGIN)
    shown, tail = rest.split(END)
    now = "\n" + _walk()
    if shown != now and request.config.getoption("--update-golden"):
        PAGE.write_text(head + BEGIN + now + END + tail)
    elif shown != now:
        pytest.fail(
            "docs/WALKTHROUGH.md shows another walk: if the new one is right, `make golden`"
        )
