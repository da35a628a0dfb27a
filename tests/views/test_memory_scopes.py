"""The picture of the levels of memory says what the analysis says."""

import pytest

from dlcompiler import te
from dlcompiler.analysis.traffic import traffic
from dlcompiler.errors import ScheduleError
from dlcompiler.schedule import create_schedule
from dlcompiler.target.presets import X86_64_AVX2
from dlcompiler.views.memory.footprints import footprint_of, loop_of, nest_of
from dlcompiler.views.memory.scopes import memory_scopes, memory_use
from dlcompiler.views.render.scene import scene_html
from dlcompiler.views.render.units import format_bytes


def picture(schedule, tensors, chosen=None):
    return memory_scopes(schedule, tensors, X86_64_AVX2, chosen)


def use_of(schedule, tensors, chosen=None):
    return memory_use(footprint_of(schedule, tensors, X86_64_AVX2), X86_64_AVX2, chosen)


def test_the_table_has_the_numbers_of_the_analysis(blocked, tensors, parsed):
    scene = picture(blocked, tensors, "C/j.outer")
    footprint = footprint_of(blocked, tensors, X86_64_AVX2)
    fills = traffic(footprint, X86_64_AVX2)
    for level, items in fills.items():
        rows = [row for row in scene["table"]["rows"] if row[0] == level and row[6] is not None]
        moved = sum(fill.moved_bytes for fill in items)
        assert sum(row[6] + row[7] for row in rows) == moved
        texts = [mark["text"] for mark in scene["marks"] if "text" in mark]
        assert f"{format_bytes(moved)} predicted" in texts
    touched = footprint.one(nest_of(footprint, "C/j.outer"))
    rows = {row[1]: row[4] for row in scene["table"]["rows"] if row[4] is not None}
    assert rows == {buffer.name: item.elements for buffer, item in touched.items()}
    assert parsed(str(scene_html(scene))).find(".//table") is not None


def test_a_text_that_no_line_has_room_for_loses_its_middle():
    name = "a_tensor_with_a_name_" * 4
    A = te.placeholder((64,), name=name)
    B = te.compute((64,), lambda i: A[i] * 2.0, name="B")
    scene = memory_scopes(create_schedule(B.op), [A, B], X86_64_AVX2)
    (mark,) = (m for m in scene["marks"] if m["shape"] == "text" and m["text"].startswith("a_ten"))
    assert mark["text"].endswith(" 256 B")
    assert len(mark["text"]) * 6.8 <= scene["width"]
    assert name in mark["title"]


def test_a_buffer_is_where_its_working_set_first_fits(blocked, tensors):
    use = use_of(blocked, tensors, "C/i.outer")
    for level in use.levels[:-1]:
        held = sum(held.bytes for held in level.held)
        assert level.nearer_bytes + held <= level.capacity_bytes
    assert sum(len(level.held) for level in use.levels) == 4


def test_a_segment_names_the_loops_that_fill_it():
    n = 512
    A = te.placeholder((n, n), name="A")
    B = te.compute((n, n), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((n, n), lambda i, j: B[j, i] * 2.0, name="C")
    s = create_schedule(C.op)
    use = use_of(s, [A, C], "C/j")
    assert {"B/i", "C/j"} <= {loop.key for loop in use.levels[0].loops}
    held = {held.footprint.buffer.name: held.keys for held in use.levels[0].held}
    assert held == {"B": ("C/j", "B/i"), "C": ("C/j",)}


def test_without_a_choice_it_is_the_whole_program(plain, tensors):
    scene = picture(plain, tensors)
    assert scene["summary"].startswith("The whole program touches 48 KiB: ")
    assert scene["summary"].endswith(
        "48 KiB are moved to and from memory (predicted; no schedule moves less than 48 KiB)."
    )


def test_a_scope_shows_its_capacity(blocked, tensors):
    scene = picture(blocked, tensors)
    texts = [mark["text"] for mark in scene["marks"] if "text" in mark]
    assert texts[texts.index("scope local") :][:2] == ["scope local", "at most 64 KiB each:"]


def test_a_loop_of_one_iteration_shows_what_is_around_it(blocked, tensors):
    footprint = footprint_of(blocked, tensors, X86_64_AVX2)
    assert loop_of(nest_of(footprint, "C/gone")) is None
    assert loop_of(nest_of(footprint, "C.local")) == "C/j.outer"


def test_marks_lie_in_the_picture(blocked, tensors):
    scene = picture(blocked, tensors, "C.local/k.outer")
    for mark in scene["marks"]:
        assert mark.get("x", 0) >= 0
        assert mark.get("x", 0) + mark.get("w", 0) <= scene["width"]
        assert mark.get("y", 0) + mark.get("h", 0) <= scene["height"]


def test_unknown_sizes_are_refused():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    with pytest.raises(ScheduleError, match="known only when the program runs"):
        picture(create_schedule(B.op), [A, B])


def test_a_buffer_that_is_larger_than_its_scope_says_so():
    A = te.placeholder((256, 256), name="A")
    B = te.compute((256, 256), lambda i, j: A[i, j] + 1.0, name="B")
    s = te.create_schedule(B.op)
    s.cache_write(B, "local")
    texts = [mark["text"] for mark in picture(s, [A, B])["marks"] if "text" in mark]
    assert "B.local 256 KiB, more than that" in texts
