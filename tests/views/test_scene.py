"""Pictures as data: what becomes of their marks, whatever they say."""

import xml.etree.ElementTree as ET

from dlcompiler.views import loop_tree
from dlcompiler.views.loops.nest_scene import nest_scene
from dlcompiler.views.render.scene import scene_html

HOSTILE = "</title><script>alert(1)</script><img src=x onerror=alert(1)>"
MARKS = [
    {"shape": "rect", "role": "box", "x": 0, "y": 0.25, "w": 10, "h": 10, "title": HOSTILE},
    {"shape": "line", "role": "axis", "x": 0, "y": 0, "x2": 5, "y2": 5},
    {"shape": "circle", "role": "node", "x": 3, "y": 3, "r": 2, "fill": "#0072B2"},
    {"shape": "path", "role": "edge", "d": "M0 0L1 1"},
    {"shape": "text", "role": "name", "x": 1, "y": 9, "text": HOSTILE, "anchor": "middle"},
]
SCENE = {
    "title": HOSTILE, "summary": HOSTILE, "how_to_read": HOSTILE, "width": 20, "height": 12.5,
    "marks": MARKS, "table": {"columns": ["what", HOSTILE], "rows": [[HOSTILE, 1234567]]},
}  # fmt: skip


def test_every_mark_is_drawn_and_every_word_is_text():
    html = scene_html(SCENE)
    figure = ET.fromstring(html)
    names = [node.tag for node in figure.iter()]
    for name in ("rect", "line", "circle", "path", "text"):
        assert names.count(name) == 1
    assert "script" not in names
    assert "img" not in names
    assert HOSTILE in [node.text for node in figure.iter("text")]


def test_a_picture_says_what_it_is_without_being_seen():
    figure = ET.fromstring(scene_html(SCENE))
    picture = figure.find("div/svg")
    assert picture.get("role") == "img"
    assert picture.get("aria-label") == f"{HOSTILE}: {HOSTILE}"
    assert [node.text for node in figure.iter("td")] == [HOSTILE, "1,234,567"]
    assert not any(node.get("id") for node in figure.iter())


def test_words_of_the_nest_end_inside_their_box(blocked):
    scene = nest_scene(loop_tree(blocked))
    right = {}
    for mark in scene["marks"]:
        if mark["shape"] == "rect":
            right[mark["keys"][0]] = mark["x"] + mark["w"]
    assert max(right.values()) <= scene["width"]
    assert len(set(right.values())) > 5
    for mark in scene["marks"]:
        if mark["shape"] == "text" and mark["role"] == "soft":
            assert mark["x"] + 6.6 * len(mark["text"]) <= scene["width"]
