"""The notation, the Python, the LLVM IR and the assembly of a schedule, line by line."""

import json

import pytest

from dlcompiler import te
from dlcompiler.bench.programs import chain, packed_conv2d, six_step_gemm
from dlcompiler.pipeline import cross_compile, emit_source, lower
from dlcompiler.runtime.llvm import Options, emit_assembly
from dlcompiler.schedule import create_schedule
from dlcompiler.target import resolve
from dlcompiler.views import loop_tree
from dlcompiler.views.code.assembly_text import assembly_code
from dlcompiler.views.code.code_text import LARGEST_BYTES, MOST_SHOWN, code_text, place_of
from dlcompiler.views.code.llvm_text import llvm_code
from dlcompiler.views.code.notation_view import notation_lines
from dlcompiler.views.code.python_view import python_view
from dlcompiler.views.loops.line_keys import source_lines

PROGRAMS = {
    "gemm": lambda: six_step_gemm(64),
    "conv2d": lambda: packed_conv2d(16, 8, 8),
    "chain": lambda: chain(6),
}
TARGET = "x86-64-avx2"


@pytest.fixture(params=PROGRAMS, scope="module")
def texts(request):
    """A schedule, and the lines of each of its texts."""
    s, args = PROGRAMS[request.param]()
    source, func = emit_source(s, args, TARGET)
    printed = emit_assembly(source.text, Options.for_target(resolve(TARGET)))
    lines = {
        "notation": notation_lines(s),
        "python": python_view(s),
        "llvm": code_text(llvm_code(source, func))["lines"],
        "assembly": code_text(assembly_code(printed, func))["lines"],
    }
    return s, source, lines


def keys_of(lines):
    found = {key for line in lines for key in (*line["keys"], *line.get("within", ()))}
    return found | {key for line in lines for t in line["tokens"] for key in t.get("keys", ())}


def test_keys_are_loops_of_the_tree_or_stages(texts):
    s, _, lines = texts
    rows = {row["key"] for row in loop_tree(s)["rows"] if row["type"] != "statement"}
    stages = {stage.name for stage in s.state.stages}
    for name, each in lines.items():
        assert keys_of(each) <= rows | stages, name
        assert keys_of(each) & rows, name


def test_pieces_of_a_line_make_the_line(texts):
    for name, lines in texts[2].items():
        for line in lines:
            pieces = "".join(token["text"] for token in line["tokens"])
            assert "    " * line["depth"] + pieces == line["text"], name
        assert json.loads(json.dumps(lines)) == lines


def test_every_loop_is_found_in_notation_python_and_llvm(texts):
    s, _, lines = texts
    loops = {row["key"] for row in loop_tree(s)["rows"] if row["type"] == "loop"}
    for name in ("notation", "python"):
        assert loops <= keys_of(lines[name]), name
    assert loops <= keys_of(lines["llvm"])


def test_llvm_lines_are_those_of_the_generator(texts):
    _, source, lines = texts
    kept = [line["text"].strip() for line in lines["llvm"] if line["number"]]
    assert kept == [text.strip() for text in source.text.splitlines()][: len(kept)]
    for line in lines["llvm"]:
        if line["number"] and source.lines[line["number"] - 1] and line["depth"]:
            assert f"line {source.lines[line['number'] - 1]} of" in line["about"]


def test_python_is_that_of_the_trace(texts):
    s, _, lines = texts
    assert "".join(line["text"] + "\n" for line in lines["python"]) == s.trace.to_python()
    states = [line["state"] for line in lines["python"] if "state" in line]
    assert states == [node.id for node in s.node.path()]


def gemm_assembly(n=64):
    s, args = six_step_gemm(n)
    source, func = emit_source(s, args, TARGET)
    text = emit_assembly(source.text, Options.for_target(resolve(TARGET)))
    return s, func, assembly_code(text, func)


def test_instructions_of_a_vectorized_loop_have_its_key():
    _, _, code = gemm_assembly()
    lines = code_text(code)["lines"]
    multiply = [line for line in lines if "vfmadd" in line["text"]]
    assert multiply
    for line in multiply:
        assert {"C.global/j.c", "C.global/k.inner"} <= set(line["keys"])
        assert line["within"][:2] == ["C.global/i.c", "C.global/k.outer"]


def test_assembly_has_what_its_instructions_name():
    _, _, code = gemm_assembly()
    texts = [line.text for line in code.lines]
    labels = {text.removesuffix(":") for text in texts if text.endswith(":")}
    named = {text.split()[-1] for text in texts if text.startswith("j")}
    assert {name for name in named if name.startswith(".L")} <= labels
    assert not [text for text in texts if text.startswith((".loc", ".cfi", ".section", ".file"))]


def test_constants_stay_with_their_labels():
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] * 3.25, name="B")
    s = create_schedule(B.op)
    source, func = emit_source(s, [A, B], TARGET)
    code = assembly_code(emit_assembly(source.text, Options.for_target(resolve(TARGET))), func)
    texts = [line.text.split() for line in code.lines]
    assert [".long", "0x40500000"] in texts
    assert texts[texts.index([".long", "0x40500000"]) - 1][0].startswith(".LCPI")


@pytest.mark.parametrize("target", ["aarch64", "armv7", "riscv64", "wasm32"])
def test_assembly_of_other_machines_knows_its_loops(target):
    A = te.placeholder((64, 64), name="A")
    B = te.compute((64, 64), lambda i, j: A[j, i] * 3.0, name="B")
    s = create_schedule(B.op)
    module = cross_compile(s, [A, B], target)
    code = assembly_code(module.assembly, module.func, module.target.triple)
    lines = code_text(code)["lines"]
    assert keys_of(lines) == {"B", "B/i", "B/j"}
    assert any("B/j" in line["keys"] for line in lines if line["number"])


def test_lines_without_a_place_say_so():
    _, _, code = gemm_assembly()
    lines = code_text(code)["lines"]
    of_none = [line for line in lines if line["number"] and line["about"] == code.no_line]
    assert of_none
    assert all(line["keys"] == [] for line in of_none)
    assert any(line["text"].strip() == f"# {code.no_line}" for line in lines)


def unrolled(extent):
    A = te.placeholder((extent,), name="A")
    B = te.compute((extent,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((extent,), lambda i: B[i] * 2.0, name="C")
    s = create_schedule(C.op)
    s[B].unroll(B.op.axis[0])
    return s, [A, C]


def test_of_long_code_the_part_round_the_choice_is_shown():
    s, args = unrolled(600)
    source, func = emit_source(s, args, TARGET)
    code = llvm_code(source, func)
    start = code_text(code)
    assert (start["before"], len(start["lines"])) == (0, MOST_SHOWN)
    place = place_of(code, "C/i", 0)
    end = code_text(code, place)
    assert any("C/i" in line["keys"] for line in end["lines"])
    for part in (start, end):
        assert part["before"] + len(part["lines"]) + part["left_out"] == len(code.lines)
        assert len(json.dumps(part)) < 1_000_000
    first = code.first_of("B/i")
    assert place_of(code, "B/i", len(code.lines) - 3) == max(first - 15, 0)
    assert place_of(code, "C/i", place) == place
    assert place_of(code, "no such loop", place) == place


def test_the_bytes_of_long_lines_count():
    s, args = unrolled(600)
    source, func = emit_source(s, args, TARGET)
    code = llvm_code(source, func)
    long = [type(line)(line.text + "x" * 5000, line.line, line.depth) for line in code.lines]
    part = code_text(type(code)(**{**vars(code), "lines": tuple(long)}))
    assert len(part["lines"]) < MOST_SHOWN
    assert len(json.dumps(part)) < 1.2 * LARGEST_BYTES


def test_the_lines_around_a_line():
    s, args = six_step_gemm(64)
    lines = source_lines(lower(s, args))
    (store,) = {line.within for line in lines if "+= broadcast" in line.text}
    assert store == ("C.global/i.c", "C.global/k.outer", "C/j.outer", "C/i.outer")


def test_names_of_values_come_from_their_assignment():
    A = te.placeholder((16, 64), name="A")
    k = te.reduce_axis((0, 16), name="k")
    P, V = te.compute((64,), lambda j: te.argmax(A[k, j], axis=k), name="best")
    s = create_schedule(V.op)
    j, k = s[V].op.axis[0], s[V].op.reduce_axis[0]
    s[V].reorder(k, j)
    s[V].vectorize(j)
    lines = source_lines(lower(s, [A, P, V]))
    named = [line for line in lines if ".next = " in line.text]
    assert named
    assert all("best/j" in line.keys and line.within == ("best/k",) for line in named)


def test_notation_of_stages_without_notation():
    A = te.placeholder((8,), name="A")
    value = A[0]
    for _ in range(13):
        value = value + value
    B = te.compute((8,), lambda i: value + A[i], name="B")
    line = notation_lines(create_schedule(B.op))[-1]
    assert "no notation: the expression is too large" in line["text"]


def test_notation_of_a_long_statement_is_cut():
    A = te.placeholder((500,), name="A")
    terms = [A[n] for n in range(500)]
    while len(terms) > 1:
        terms = [sum(terms[n : n + 2], start=0) for n in range(0, len(terms), 2)]
    B = te.compute((8,), lambda i: terms[0] + A[i], name="B")
    (line,) = notation_lines(create_schedule(B.op))[1:]
    assert line["text"].endswith(" … cut: the statement is too long to show")
    assert len(json.dumps(line)) < 20_000
