import json

from dlcompiler import te
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule
from dlcompiler.views import program
from dlcompiler.views.code.program import MOST_LINES, tokens


def shown(view):
    marks = {"same": " ", "added": "+", "removed": "-"}
    return "\n".join(f"{marks[line['status']]} {line['text']}" for line in view["lines"])


def test_lines_are_those_of_the_printer(blocked, tensors):
    func = lower(blocked, tensors)
    view = program(func)
    assert [line["text"] for line in view["lines"]] == str(func).splitlines()
    assert [line["number"] for line in view["lines"]] == list(range(1, len(view["lines"]) + 1))
    assert json.loads(json.dumps(view)) == view


def test_pieces_of_a_line_make_the_line(blocked, tensors):
    for line in program(lower(blocked, tensors))["lines"]:
        pieces = "".join(token["text"] for token in line["tokens"])
        assert "    " * line["depth"] + pieces == line["text"]


def test_names_that_look_like_keywords_or_numbers_stay_whole():
    assert [t["text"] for t in tokens("A1[i.2] = format_in[i]")] == ["A1[i.2] = format_in[i]"]


def test_a_loop_marks_its_lines(blocked, tensors):
    lines = program(lower(blocked, tensors, simple_mode=True))["lines"]
    marked = [line["text"].strip() for line in lines if "C.local/i.c" in line["keys"]]
    assert marked == ["for i.c.init in range(16):", "for i.c in range(16):"]


def test_a_loop_that_was_vectorized_away_marks_its_stores(blocked, tensors):
    lines = program(lower(blocked, tensors))["lines"]
    marked = [line["text"].strip() for line in lines if "C/j.inner" in line["keys"]]
    assert len(marked) == 1
    assert marked[0].startswith("C[")


def test_a_stage_marks_its_buffer(blocked, tensors):
    lines = program(lower(blocked, tensors))["lines"]
    (line,) = [line for line in lines if "allocate" in line["text"]]
    assert line["keys"] == ["C.local"]


def test_difference_to_the_state_before(plain, tensors, golden):
    C = tensors[2]
    before = lower(plain, tensors, simple_mode=True)
    plain[C].tile(*C.op.axis, 16, 16)
    view = program(lower(plain, tensors, simple_mode=True), before)
    golden("tile", shown(view))
    assert view["added"] == sum(line["status"] == "added" for line in view["lines"])
    assert all(line["number"] is None for line in view["lines"] if line["status"] == "removed")


def test_nothing_changed(plain, tensors):
    func = lower(plain, tensors)
    view = program(func, func)
    assert (view["added"], view["removed"]) == (0, 0)


def test_the_lines_that_are_not_removed_are_the_program(plain, tensors):
    before = lower(plain, tensors)
    stage = plain[tensors[2]]
    stage.reorder(stage.leaf_iter_vars[2], stage.leaf_iter_vars[0])
    func = lower(plain, tensors)
    kept = [line["text"] for line in program(func, before)["lines"] if line["number"]]
    assert kept == str(func).splitlines()


def unrolled(extent):
    A = te.placeholder((extent,), name="A")
    B = te.compute((extent,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    func = lower(s, [A, B])
    s[B].unroll(s[B].op.axis[0])
    return lower(s, [A, B]), func


def test_a_long_program_is_cut_and_says_so():
    func, before = unrolled(1000)
    view = program(func, before)
    assert len(view["lines"]) == MOST_LINES
    assert view["left_out"] == 1000 + 1 + 2 - MOST_LINES
    assert (view["added"], view["removed"]) == (1000, 2)
