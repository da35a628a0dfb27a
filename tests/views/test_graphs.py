"""The graphs of stages and of axes: all is there once, nothing overlaps, nothing runs upward."""

import itertools
import random
import xml.etree.ElementTree as ET

import pytest

from dlcompiler import te
from dlcompiler.ir import call_packed
from dlcompiler.schedule import create_schedule
from dlcompiler.views.loops.axis_graph import axes_scene
from dlcompiler.views.loops.schedule_graph import dataflow_scene
from dlcompiler.views.render.layered import layered
from dlcompiler.views.render.scene import scene_html


def overlap(a, b):
    return a.x < b.x + b.w and b.x < a.x + a.w and a.y < b.y + b.h and b.y < a.y + a.h


@pytest.mark.parametrize("seed", range(20))
def test_a_layout_runs_downward_and_nothing_overlaps(seed):
    rng = random.Random(seed)
    n = rng.randint(1, 14)
    sizes = {node: (rng.uniform(20, 90), rng.uniform(10, 40)) for node in range(n)}
    edges = [pair for pair in itertools.combinations(range(n), 2) if rng.random() < 0.25]
    places = layered(sizes, edges)
    assert set(places) == set(sizes)
    assert not any(overlap(a, b) for a, b in itertools.combinations(places.values(), 2))
    assert all(places[a].y + places[a].h <= places[b].y for a, b in edges)
    assert layered(sizes, edges) == places


def test_a_cycle_is_refused():
    with pytest.raises(ValueError, match="cycle"):
        layered({"a": (1, 1), "b": (1, 1)}, [("a", "b"), ("b", "a")])


def three_stages():
    A = te.placeholder((8, 8), name="A")
    B = te.compute((8, 8), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((8, 8), lambda i, j: B[i, j] * 2.0, name="C")
    D = te.compute((8, 8), lambda i, j: C[i, j] - B[i, j], name="D")
    s = create_schedule(D.op)
    s[C].compute_inline()
    s[B].compute_at(s[D], s[D].op.axis[0])
    return s, D


def test_the_graph_of_stages():
    s, _ = three_stages()
    scene = dataflow_scene(s)
    assert scene["summary"] == (
        "1 input, 3 computed stages: 1 inside a loop of a reader, 1 inlined."
    )
    assert scene["table"]["rows"] == [
        ["B", "float32[8, 8]", "global", "inside a loop of D", "C, D"],
        ["C", "float32[8, 8]", "global", "inlined", "D"],
        ["D", "float32[8, 8]", "global", "output", ""],
        ["A", "float32[8, 8]", "global", "input", "B"],
    ]
    assert sum(mark["shape"] == "path" for mark in scene["marks"]) == 4
    boxes = [mark for mark in scene["marks"] if mark["shape"] == "rect"]
    assert [box["role"] for box in boxes] == ["node", "node", "capacity", "node"]
    ET.fromstring(scene_html(scene))


def test_the_graph_of_axes():
    s, D = three_stages()
    i, j = s[D].op.axis
    fused = s[D].fuse(i, j)
    _, inner = s[D].split(fused, factor=4)
    s[D].vectorize(inner)
    scene = axes_scene(s, "D")
    assert scene["summary"] == "D has 2 axes; 1 split and 1 fusion made 2 loops of them."
    assert [row[0] for row in scene["table"]["rows"]] == [
        "i", "j", "i.j.fused", "i.j.fused.outer", "i.j.fused.inner",
    ]  # fmt: skip
    assert [row[4] for row in scene["table"]["rows"]] == [None, None, None, 1, 2]
    keyed = {key for mark in scene["marks"] for key in mark.get("keys", [])}
    assert keyed == {"D/i.j.fused.outer", "D/i.j.fused.inner"}
    assert any("vectorized" in mark.get("text", "") for mark in scene["marks"])


def test_extents_of_an_attached_stage_are_those_of_its_part():
    s, _ = three_stages()
    rows = axes_scene(s, "B")["table"]["rows"]
    assert [row[1] for row in rows] == [1, 8]


def test_axes_that_no_split_connects_are_parts_of_the_picture():
    A = te.placeholder((8, 8, 8), name="A")
    B = te.compute((8, 8, 8), lambda i, j, k: A[i, j, k] + 1.0, name="B")
    s = create_schedule(B.op)
    i, j, k = B.op.axis
    s[B].split(k, factor=2)
    assert len(axes_scene(s, "B")["parts"]) == 3
    s[B].fuse(i, j)
    scene = axes_scene(s, "B")
    assert len(scene["parts"]) == 2
    assert sum(part["count"] for part in scene["parts"]) == len(scene["marks"])


def doubled():
    A = te.placeholder((), name="A")
    return te.compute((), lambda: A[()] * 2.0, name="B")


def from_outside():
    A = te.placeholder((8,), name="A")
    return te.extern((8,), [A], lambda i, o: call_packed("test.views", *i, *o), name="B")


@pytest.mark.parametrize("define", [doubled, from_outside])
def test_a_stage_without_axes_says_so(define):
    B = define()
    scene = axes_scene(create_schedule(B.op), "B")
    assert scene["summary"] == (
        "B has no axes: it is one statement, or code from outside computes it."
    )
    ET.fromstring(str(scene_html(scene)))
