"""The picture of a block of threads says what was recorded; what of a device other views show."""

import json

import pytest

from dlcompiler import te
from dlcompiler.errors import CallError, ScheduleError
from dlcompiler.ir import Buffer
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule
from dlcompiler.simulate.recording import Phase, Touch, record_block
from dlcompiler.views import text_table
from dlcompiler.views.device.block_map import index_of, merged_cells, window_of
from dlcompiler.views.device.block_phases import Round, rounds, shown_for, shown_phases
from dlcompiler.views.device.thread_block import block_view, thread_block
from dlcompiler.views.render.scene import scene_html, scene_svg
from tests.static_pictures import pictures_in
from tests.thread_programs import convolution, tiled_matmul


@pytest.fixture(scope="module")
def tiled():
    """The recording of a product of 16×16 in tiles of 4×4×2."""
    s, args = tiled_matmul(16, 4, 2)
    return record_block(lower(s, args, simple_mode=True))


def said(scene):
    """A picture as words: its sentence, its texts and its table."""
    texts = [mark["text"] for mark in scene["marks"] if mark["shape"] == "text"]
    table = text_table(scene["table"]["columns"], scene["table"]["rows"])
    return "\n".join([scene["summary"], "", *texts, "", table])


def titles(scene, sign):
    """What is said of the threads (``t``), or of the elements (``e``), by key."""
    cells = (mark for mark in scene["marks"] if mark["role"] == "cell")
    return {m["keys"][0]: m["title"] for m in cells if m["keys"][0][0] == sign}


def test_a_tiled_product(tiled, golden):
    scene = block_view(tiled)["scene"]
    golden("product", said(scene))
    golden("product_svg", str(scene_svg(scene)).replace("><", ">\n<"))


def test_a_convolution_with_virtual_threads(golden):
    s, args = convolution(2)
    golden("convolution", said(thread_block(s, args, block={"blockIdx.x": 1})))


def test_the_grids_have_numbers_and_the_colours_a_legend(tiled):
    words = said(block_view(tiled)["scene"])
    assert "colour of a thread, its first element: [0, 0] … [3, 0]" in words
    assert "of an element, its first thread: (0, 0) … (0, 3)" in words


def test_threads_and_vectors_in_rows_are_numbered_by_their_first():
    A = te.placeholder((4096,), name="A")
    B = te.compute((4096,), lambda i: A[i] * 2.0, name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], factor=512)
    s[B].bind(outer, te.thread_axis("blockIdx.x"))
    s[B].bind(inner, te.thread_axis("threadIdx.x"))
    scene = thread_block(s, [A, B], block={"blockIdx.x": 1})
    texts = [mark["text"] for mark in scene["marks"] if mark["shape"] == "text"]
    assert texts.count("256") == 1  # the ninth row of threads
    assert texts.count("768") == 1  # the ninth row of the elements of block 1


def test_every_thread_and_element_has_its_words(tiled):
    scene = block_view(tiled)["scene"]
    assert titles(scene, "t")["t6"] == (
        "thread (2, 1) reads A.shared[1, 0], A.shared[1, 1]: 2 elements, 8 B"
    )
    assert titles(scene, "e")["e2"] == ("A.shared[1, 0]: 4 threads, (0, 1), (1, 1), (2, 1), (3, 1)")
    assert len(titles(scene, "t")) == 16
    assert len(titles(scene, "e")) == 8


def test_threads_and_elements_name_each_other(tiled):
    cells = [m for m in block_view(tiled)["scene"]["marks"] if m["role"] == "cell"]
    keys = {mark["keys"][0]: set(mark["keys"][1:]) for mark in cells}
    assert keys["t6"] == {"e2", "e3"}
    assert all(key in keys[other] for key, others in keys.items() for other in others)


def test_equal_colours_are_what_threads_share(tiled):
    cells = [m for m in block_view(tiled)["scene"]["marks"] if m["role"] == "cell"]
    fills = {mark["keys"][0]: mark["fill"] for mark in cells}
    for row in range(4):
        assert len({fills[f"t{4 * row + x}"] for x in range(4)}) == 1, "a row reads a row of A"
    assert len({fills[f"t{4 * y}"] for y in range(4)}) == 4


def test_the_phase_and_the_buffer_are_chosen(tiled):
    view = block_view(tiled, 1, "B r")
    assert (view["phase"], view["buffer"]) == (1, "B r")
    assert [choice["key"] for choice in view["buffers"]] == [
        "A r",
        "A.shared w",
        "B r",
        "B.shared w",
    ]
    assert view["phases"][1] == {"key": "1", "text": "phase 2 of 17, k.outer = 0"}
    assert "each of 8 of them reads 1 element of B (4 B)" in view["scene"]["summary"]
    assert view["threads"][0]["text"] == "thread (0, 0) reads B[0, 0]: 1 element, 4 B"
    assert view["threads"][-1]["text"] == "thread (3, 3) reads nothing"
    assert json.loads(json.dumps(view)) == view


def test_a_phase_of_private_buffers_has_no_map(tiled):
    view = block_view(tiled, 0)
    assert (view["buffer"], view["buffers"], view["threads"]) == ("", [], [])
    assert view["scene"]["summary"].endswith(
        "each thread touches only memory of its own or of its warp."
    )
    assert not titles(view["scene"], "t")


@pytest.mark.parametrize("phase", [-1, 17])
def test_a_phase_that_there_is_not_is_refused(tiled, phase):
    with pytest.raises(ScheduleError) as caught:
        block_view(tiled, phase)
    assert str(caught.value) == (
        f"draw a block: there is no such phase\n  got       {phase}\n  expected  0 to 16"
    )


def test_a_buffer_that_the_phase_does_not_touch_is_refused(tiled):
    with pytest.raises(ScheduleError) as caught:
        block_view(tiled, 1, "C w")
    assert str(caught.value) == (
        "draw a block: phase 1 does not touch that\n  got       'C w'\n"
        "  expected  A r, A.shared w, B r, B.shared w"
    )


def test_a_schedule_without_threads_is_refused(plain, tensors):
    with pytest.raises(CallError, match="none of its loops is bound to the threads of a block"):
        thread_block(plain, tensors)


def test_the_fragment_is_well_formed_and_small_where_it_is_kept(tiled, parsed):
    scene = block_view(tiled)["scene"]
    assert parsed(str(scene_html(scene))).find(".//table") is not None
    kept = {**scene, "marks": merged_cells(scene["marks"])}
    assert len(pictures_in(scene_html(kept))) == 1
    drawn = [mark["d"].count("M") for mark in kept["marks"] if mark["role"] == "cell"]
    assert sum(drawn) == 16 + 8
    assert len(str(scene_svg(kept))) < len(str(scene_svg(scene))) * 2 / 3


def one_dimension(n, index):
    """Threads of which each reads an element of a vector."""
    A = te.placeholder((1024,), name="A")
    B = te.compute((n,), lambda i: A[index(i)], name="B")
    s = create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    return thread_block(s, [A, B])


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (lambda i: i, "touch elements side by side"),
        (lambda i: i * 0 + 3, "touch the same element"),
        (lambda i: i * 4, "touch elements 4 apart"),
        (lambda i: 200 - i, "touch elements 1 apart, in reverse order"),
        (lambda i: i // 2, "touch elements at varying distances"),
    ],
)
def test_how_far_apart_neighbours_reach(index, text):
    assert one_dimension(100, index)["summary"].endswith(f"neighbours along threadIdx.x {text}.")


def test_a_row_of_threads_is_drawn_by_warps():
    scene = one_dimension(100, lambda i: i)
    texts = [mark["text"] for mark in scene["marks"] if mark["shape"] == "text"]
    assert "rows of 32; colour: element" in texts
    assert len({m["y"] for m in scene["marks"] if m["role"] == "cell"}) == 4


def test_a_block_with_layers():
    A = te.placeholder((2, 3, 4), name="A")
    B = te.compute((2, 3, 4), lambda i, j, k: A[i, j, k] + 1.0, name="B")
    s = create_schedule(B.op)
    for axis, tag in zip(B.op.axis, "zyx", strict=True):
        s[B].bind(axis, te.thread_axis(f"threadIdx.{tag}"))
    scene = thread_block(s, [A, B])
    assert "Simulated: 4 × 3 × 2 threads" in scene["summary"]
    assert titles(scene, "t")["t23"] == "thread (3, 2, 1) reads A[1, 2, 3]: 1 element, 4 B"


# -- places --------------------------------------------------------------------------------------


def test_elements_of_padded_rows():
    buffer = Buffer("A", (3, 2, 5), "float32", strides=(16, 8, 1))
    assert [index_of(buffer, at) for at in (0, 4, 8, 16, 44)] == [
        (0, 0, 0), (0, 0, 4), (0, 1, 0), (1, 0, 0), (2, 1, 4),
    ]  # fmt: skip


def test_a_large_part_is_drawn_in_cells_of_several_elements():
    buffer = Buffer("A", (512, 512), "float32")
    corners = [100 * 512 + 8, 299 * 512 + 107]
    window = window_of(Touch(buffer, False, {(0, 0, 0): corners}))
    assert (window.top, window.left, window.rows, window.columns) == (100, 8, 200, 100)
    assert (window.down, window.across, window.cells) == (8, 4, (25, 25))
    assert [window.place(at) for at in corners] == [(0, 0), (24, 24)]


# -- rounds --------------------------------------------------------------------------------------


def phases(text):
    """Phases named by letters; equal letters are equal phases."""
    names = {letter: Buffer(letter, (1,), "float32") for letter in set(text)}
    return [Phase((Touch(names[letter], True, {(0, 0, 0): [0]}),), 0, ()) for letter in text]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", [0]),
        ("abc", [0, 1, 2]),
        ("aaaa", [Round((0,), 4)]),
        ("abababc", [Round((0, 1), 3), 6]),
        ("iabababe", [0, Round((1, 2), 3), 7]),
        ("iababeiabab", [0, Round((1, 2), 2), 5, 6, Round((7, 8), 2)]),
        ("iabababiababab", [Round((0, Round((1, 2), 3)), 2)]),
        ("abbabb", [Round((0, Round((1,), 2)), 2)]),
    ],
)
def test_what_a_loop_repeats_is_shown_once(text, expected):
    found = rounds(phases(text))
    assert found == expected
    assert "".join(text[n] for n in shown_for(found)) == text
    assert set(shown_phases(found)) == set(shown_for(found))
