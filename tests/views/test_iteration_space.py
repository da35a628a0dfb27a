"""The iteration space against the interpreter: every element, in the order of the visit."""

import itertools
import json
import math

import pytest

from dlcompiler import te
from dlcompiler.errors import ScheduleError
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule
from dlcompiler.views import loop_tree
from dlcompiler.views.loops.earlier import earlier, in_step
from dlcompiler.views.loops.iteration_scene import blocks, iteration_scene
from dlcompiler.views.loops.iteration_space import iteration_space
from dlcompiler.views.loops.space_zoom import cells, first_zoom, part_text, window_of, zooms
from dlcompiler.views.loops.visits import loop_values, touched, value_of
from dlcompiler.views.render.scene import scene_html
from tests.static_pictures import pictures_in


@te.hybrid.script
def prefix_sums(a):
    b = output_tensor(a.shape, "float32")  # noqa: F821
    b[0] = a[0]
    for i in range(1, a.shape[0]):
        b[i] = b[i - 1] + a[i]
    return b


def matmul(n=6, m=8, l=4):  # noqa: E741
    A, B = te.placeholder((n, l), name="A"), te.placeholder((l, m), name="B")
    k = te.reduce_axis((0, l), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return create_schedule(C.op), [A, B, C]


def space_of(s, args, key=None):
    return iteration_space(lower(s, args, simple_mode=True), loop_tree(s), key)


def test_the_plain_nest():
    s, args = matmul()
    space = space_of(s, args, "C/k")
    assert json.loads(json.dumps(space)) == space
    assert [loop["key"] for loop in space["loops"]] == ["C/i", "C/j", "C/k"]
    assert (space["depth"], space["steps"]) == (3, 6 * 8 * 4)
    for step in range(space["steps"]):
        i, j, k = loop_values(space, step)
        assert (i, j, k) == (step // 32, step // 4 % 8, step % 4)
        seen = touched(space, step)
        assert seen["C"]["points"] == [[i, j]]
        assert seen["A"]["points"] == [[i, k]]
        assert seen["B"]["points"] == [[k, j]]


@pytest.mark.parametrize("key", ["C/i.outer", "C/j.outer", "C/k", "C/i.inner", "C/j.inner"])
def test_all_steps_together_touch_everything_once(key):
    """Tiles that divide nothing: guards cut off what lies outside."""
    s, args = matmul(7, 9, 5)
    C = args[-1]
    i, j = s[C].op.axis
    (k,) = s[C].op.reduce_axis
    i_outer, j_outer, i_inner, j_inner = s[C].tile(i, j, 4, 4)
    s[C].reorder(i_outer, j_outer, k, i_inner, j_inner)
    space = space_of(s, args, key)
    assert space["chosen"] == key
    visits = [touched(space, step) for step in range(space["steps"])]
    for name, shape in (("A", (7, 5)), ("B", (5, 9)), ("C", (7, 9))):
        seen = {tuple(point) for visit in visits for point in visit[name]["points"]}
        assert len(seen) == math.prod(shape)
        assert max(seen) == tuple(side - 1 for side in shape)


def test_a_step_of_an_outer_loop_touches_a_tile():
    s, args = matmul(8, 8, 4)
    s[args[-1]].tile(*s[args[-1]].op.axis, 4, 2)
    space = space_of(s, args, "C/j.outer")
    seen = touched(space, 1)
    assert seen["C"]["spans"] == [[0, 1, 2, 3], [2, 3]]
    assert len(seen["C"]["points"]) == 8
    assert len(seen["A"]["points"]) == 16


def test_a_fused_loop_and_a_padded_read():
    A = te.placeholder((6,), name="A")
    P = te.compute((8,), lambda i: te.if_then_else(te.all(i >= 1, i < 7), A[i - 1], 0.0), name="P")
    Q = te.compute((4, 6), lambda i, j: A[j] * 2.0, name="Q")
    s = create_schedule(P.op)
    space = space_of(s, [A, P], "P/i")
    assert [touched(space, step)["A"]["points"] for step in range(8)] == [
        [], [[0]], [[1]], [[2]], [[3]], [[4]], [[5]], [],
    ]  # fmt: skip
    s = create_schedule(Q.op)
    s[Q].fuse(*s[Q].op.axis)
    space = space_of(s, [A, Q], "Q/i.j.fused")
    assert [touched(space, n)["Q"]["points"] for n in (5, 6)] == [[[0, 5]], [[1, 0]]]


def tiled(n, factor):
    s, args = matmul(n, n, n)
    C = args[-1]
    outer, inner = zip(*(s[C].split(axis, factor) for axis in s[C].op.axis), strict=True)
    s[C].reorder(*outer, *s[C].op.reduce_axis, *inner)
    return s, args


@pytest.mark.campaign
@pytest.mark.parametrize("key", ["C/i.outer", "C/k", "C/i.inner", "C/j.inner"])
@pytest.mark.parametrize("factor", [2, 3])
def test_earlier_steps_are_all_counted(key, factor):
    space = space_of(*tiled(7, factor), key)
    so_far = {tensor["name"]: set() for tensor in space["tensors"]}
    for step in range(space["steps"]):
        for tensor in space["tensors"]:
            name = tensor["name"]
            assert everything(earlier(space, tensor, step)) == so_far[name], (step, name)
            now = {tuple(point) for point in touched(space, step)[name]["points"]}
            assert everything(in_step(space, tensor, step)) == now
            so_far[name] |= now


def everything(regions):
    """The elements of regions, which are all exact."""
    found = set()
    for region in regions:
        assert region.exact
        for choice in itertools.product(*(part.values for part in region.parts)):
            places = [
                (dim, at) for part, values in zip(region.parts, choice, strict=True)
                for dim, at in zip(part.dims, values, strict=True)
            ]  # fmt: skip
            found.add(tuple(at for _, at in sorted(places)))
    return found


def test_dimensions_that_hang_together_are_counted_exactly():
    A = te.placeholder((20, 20), name="A")
    k = te.reduce_axis((0, 3), name="k")
    B = te.compute(
        (6, 5),
        lambda i, j: te.sum(te.if_then_else(te.all(i >= k, j < 4), A[i - k, i + k], 0.0), axis=k),
        name="B",
    )
    s = create_schedule(B.op)
    s[B].fuse(*s[B].op.axis)
    space = space_of(s, [A, B], "B/i.j.fused")
    so_far = set()
    tensor = next(t for t in space["tensors"] if t["name"] == "A")
    for step in range(space["steps"]):
        assert everything(earlier(space, tensor, step)) == so_far
        so_far |= {tuple(point) for point in touched(space, step)["A"]["points"]}


def test_the_trail_of_a_huge_nest_is_exact():
    space = space_of(*tiled(4096, 32), "C/j.inner")
    tensor = next(t for t in space["tensors"] if t["name"] == "A")
    found = earlier(space, tensor, space["steps"] - 1)
    assert all(region.exact for region in found)
    assert any(region.contains((4095, 4095)) for region in found)
    (region,) = earlier(space, tensor, 32 * 32 * 5)
    assert region.contains((31, 4))
    assert not region.contains((31, 5))


def test_a_zoom_at_which_inner_loops_move():
    space = space_of(*tiled(512, 32), "C/j.inner")
    assert zooms(space) == [
        "whole tensors", "one iteration of i.outer", "one iteration of j.outer",
        "one iteration of k", "one iteration of i.inner", "single elements",
    ]  # fmt: skip
    assert first_zoom(space) == 2
    tensor = space["tensors"][0]
    step = ((1 * 16 + 2) * 512 + 7) * 1024 + 5
    window = window_of(space, tensor, 2, step)
    assert part_text(tensor, window) == "rows 32–63, columns 64–95"
    assert (window.rows, window.columns, window.block) == (32, 32, (1, 1))
    assert cells(touched(space, step)[tensor["name"]], window) == {(0, 5)}
    assert part_text(tensor, window_of(space, tensor, 0, step)) == ""


def test_without_tiles_single_elements_move():
    space = space_of(*matmul(512, 512, 512), "C/k")
    assert zooms(space)[first_zoom(space)] == "single elements"
    tensor = next(t for t in space["tensors"] if t["name"] == "A")
    assert part_text(tensor, window_of(space, tensor, 3, 40)) == "rows 0–31, columns 32–63"
    small = space_of(*matmul(), "C/k")
    assert first_zoom(small) == 0


def test_a_large_step_is_drawn_by_dimension():
    s, args = matmul(256, 256, 64)
    space = space_of(s, args, "C/i")
    seen = touched(space, 3)
    assert not seen["B"]["exact"]
    assert seen["B"]["is_box"]
    rows = iteration_scene(space, 3)["table"]["rows"]
    assert [(row[0], row[3]) for row in rows] == [("C", 256), ("A", 64), ("B", 16384)]
    assert seen["A"]["spans"] == [[3], list(range(64))]
    tensor = next(t for t in space["tensors"] if t["name"] == "B")
    assert tensor["grid"]["block"] == [4, 16]
    assert len(cells(seen["B"], window_of(space, tensor, 0, 3))) == 16 * 16


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        (["truncdiv", 2**60 + 1, 1], 2**60 + 1),
        (["truncdiv", -(2**60) - 1, 2], -(2**59)),
        (["truncmod", 2**60 + 1, 2], 1),
        (["truncmod", -(2**60) - 1, 2], -1),
        *(([op, 7, 0], 0) for op in ("//", "%", "truncdiv", "truncmod")),
    ],
)
def test_formulas_are_computed_as_indices(formula, value):
    """Divisions are exact above 2**53, and a division by 0 gives 0."""
    assert value_of(formula, []) == value


def test_an_attached_stage_stands_in_the_loops_of_its_reader():
    A = te.placeholder((4, 6), name="A")
    B = te.compute((4, 6), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((4, 6), lambda i, j: B[i, j] * 2.0, name="C")
    s = create_schedule(C.op)
    s[B].compute_at(s[C], s[C].op.axis[0])
    space = space_of(s, [A, C], "B/j")
    assert [loop["key"] for loop in space["loops"]] == ["C/i", "B/j"]
    assert touched(space, 8)["A"]["points"] == [[1, 2]]


def test_an_index_from_data_is_left_out_and_said():
    I = te.placeholder((5,), name="I", dtype="int32")  # noqa: E741
    A = te.placeholder((9,), name="A")
    B = te.compute((5,), lambda i: A[I[i]], name="B")
    space = space_of(create_schedule(B.op), [I, A, B])
    assert [tensor["name"] for tensor in space["tensors"]] == ["B", "I"]
    assert any("its index is read from data" in note for note in space["notes"])


def test_a_reduction_to_several_values_touches_all_that_it_reads():
    A, k = te.placeholder((4, 8), name="A"), te.reduce_axis((0, 8), name="k")
    best, value = te.compute((4,), lambda i: te.argmax(A[i, k], k), name="T")
    space = space_of(create_schedule(best.op), [A, best, value], "T/k")
    assert [tensor["name"] for tensor in space["tensors"]] == ["T.v0", "T.v1", "A"]
    assert touched(space, 11)["A"]["points"] == [[1, 3]]
    assert space["notes"] == []


def test_what_is_not_drawn_is_said():
    A, M = te.placeholder((8,), name="A"), te.placeholder((8,), "bool", name="M")
    B = te.compute((8,), lambda i: te.if_then_else(M[i], A[i], 0.0), name="B")
    assert space_of(create_schedule(B.op), [A, M, B])["notes"] == [
        "A[i] is not drawn: a condition reads data"
    ]
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((), lambda: te.sum(A[k], axis=k), name="C")
    assert space_of(create_schedule(C.op), [A, C])["notes"] == [
        "C is one element, and is not drawn"
    ]
    D = te.compute((8, 8), lambda i, j: A[i], name="D")
    s = create_schedule(D.op)
    s[D].parallel(D.op.axis[0])
    assert space_of(s, [A, D])["notes"][0].startswith("i runs on several cores")


def test_of_several_statements_it_is_the_one_with_most_reads():
    A = te.placeholder((16,), name="A")
    B = prefix_sums(A)
    space = space_of(create_schedule(B.op), [A, B])
    accesses = [access["text"] for tensor in space["tensors"] for access in tensor["accesses"]]
    assert accesses == ["prefix_sums[i + 1]", "prefix_sums[i]", "A[i + 1]"]


def test_symbols_have_no_picture():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    with pytest.raises(ScheduleError, match="known only at a call"):
        space_of(create_schedule(B.op), [A, B])


def test_the_still_picture():
    s, args = matmul()
    scene = iteration_scene(space_of(s, args, "C/j"), 2)
    assert scene["summary"] == "One iteration of j: step 3 of 48, at i = 0, j = 2."
    assert [row[3] for row in scene["table"]["rows"]] == [1, 4, 4]
    (picture,) = pictures_in(scene_html(scene))
    filled = [mark for mark in scene["marks"] if mark["role"] == "cell"]
    side = filled[0]["w"]
    assert [(m["w"] / side, m["h"] / side) for m in filled] == [(1, 1), (4, 1), (1, 4)]
    assert len(list(picture.iter("rect"))) == 3 + len(filled)


def test_blocks_cover_each_cell_once():
    cells = {(r, c) for r in range(4) for c in range(5) if (r * c) % 3 != 1}
    covered = [
        (r, c)
        for top, left, bottom, right in blocks(cells)
        for r in range(top, bottom)
        for c in range(left, right)
    ]
    assert sorted(covered) == sorted(cells)


def test_a_large_step_whose_dimensions_hang_together_has_a_bound_only():
    A = te.placeholder((600, 600), name="A")
    k = te.reduce_axis((0, 100), name="k")
    trace = te.compute((120,), lambda i: te.sum(A[i + k, k], axis=k), name="trace")
    s = create_schedule(trace.op)
    space = space_of(s, [A, trace], "trace/i")
    assert touched(space, 0)["A"]["exact"]
    s[trace].split(s[trace].op.axis[0], factor=60)
    space = space_of(s, [A, trace], "trace/i.outer")
    seen = touched(space, 0)["A"]
    assert (seen["exact"], seen["is_box"]) == (False, False)
    row = next(r for r in iteration_scene(space)["table"]["rows"] if r[0] == "A")
    assert row[3] == "at most 60,000"


@pytest.mark.parametrize(
    ("key", "depth", "steps"), [("C/i.outer", 1, 1), ("C/i.inner.inner", 3, 6), ("C/j", 4, 48)]
)
def test_a_loop_that_runs_once_is_drawn_as_chosen(key, depth, steps):
    s, args = matmul()
    _, inner = s[args[2]].split(args[2].op.axis[0], factor=6)
    s[args[2]].split(inner, factor=1)
    space = space_of(s, args, key)
    assert space["chosen"] == key
    assert space["steps"] == steps
    names = [loop["key"] for loop in space["loops"]]
    assert names.index(key) + 1 == space["depth"] <= depth
    last = touched(space, steps - 1)["C"]["points"]
    assert (5, 7) in map(tuple, last)
