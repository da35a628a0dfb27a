"""Pictures as data: what becomes of their marks, whatever they say."""

import xml.etree.ElementTree as ET

import pytest

from dlcompiler.views import loop_tree
from dlcompiler.views.loops.nest_scene import nest_scene
from dlcompiler.views.render.scene import beside, scene_html, scene_image, scene_svg
from tests.static_pictures import pictures_in

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
    (picture,) = pictures_in(scene_html(SCENE))
    names = [node.tag for node in picture.iter()]
    for name in ("rect", "line", "circle", "path", "text"):
        assert names.count(name) == 1
    assert "script" not in names
    assert "img" not in names
    assert HOSTILE in [node.text for node in picture.iter("text")]


def test_a_picture_says_what_it_is_without_being_seen():
    figure = ET.fromstring(scene_html(SCENE))
    assert figure.find("img").get("alt") == f"{HOSTILE}: {HOSTILE}"
    assert len(list(figure.iter("img"))) == 1
    assert [node.text for node in figure.iter("td")] == [HOSTILE, "1,234,567"]
    assert not any(node.get("id") for node in figure.iter())
    (picture,) = pictures_in(scene_html(SCENE))
    assert picture.get("role") == "img"
    assert picture.get("aria-label") == f"{HOSTILE}: {HOSTILE}"


def test_an_image_is_the_svg_with_a_ground_of_its_own():
    (picture,) = pictures_in(scene_image(SCENE))
    style = picture.find("style")
    assert "background" in style.text
    assert "prefers-color-scheme:dark" in style.text
    picture.remove(style)
    inline = ET.fromstring(scene_svg(SCENE))
    for mark in MARKS:
        assert f".{mark['role']}{{" in style.text  # the styles of the roles are written once
    for node, wanted in zip(picture.iter(), inline.iter(), strict=True):
        assert node.tag == wanted.tag
        assert node.text == wanted.text
        rest = {"style", "class"}
        assert {k: v for k, v in node.items() if k not in rest} == {
            k: v for k, v in wanted.items() if k not in rest
        }


def test_a_long_image_has_short_titles():
    bar = {"shape": "rect", "role": "bar", "x": 1, "y": 2, "w": 3, "h": 4}
    long = {**SCENE, "marks": [{**bar, "title": f"{n}: first\n{'more ' * 99}"} for n in range(150)]}
    (picture,) = pictures_in(scene_image(long))
    assert [node.text for node in picture.findall("rect/title")][:2] == ["0: first", "1: first"]
    assert len(scene_image(long)) < 50_000
    (picture,) = pictures_in(scene_image({**long, "marks": long["marks"] * 5}))
    assert len(picture.findall("rect")) == 750
    assert not picture.findall("rect/title")


@pytest.mark.parametrize(
    "text", ["'", '"', "%", "#", "&amp;", "µs × – 汉", "</svg>", "\x00", "\n\t"]
)
def test_an_image_keeps_every_character(text):
    scene = {**SCENE, "marks": [{**MARKS[-1], "text": text}]}
    (picture,) = pictures_in(scene_image(scene))
    assert picture.find("text").text == text.replace("\x00", "\ufffd")


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


def test_parts_stand_beside_each_other():
    line = {"shape": "line", "role": "axis", "x": 0, "y": 0, "x2": 5, "y2": 5}
    word = {"shape": "text", "role": "name", "x": 1, "y": 9, "text": "a"}
    found = beside((100, 30, MARKS[2:4]), (50, 40, [line, word]))
    assert (found["width"], found["height"]) == (170, 40)
    assert [mark.get("x") for mark in found["marks"]] == [3, None, 120, 121]
    assert found["marks"][2]["x2"] == 125
    assert [(part["count"], part["x"]) for part in found["parts"]] == [(2, 0), (2, 120)]
    assert line["x"] == 0


def test_a_path_in_a_part_is_moved():
    path = {"shape": "path", "role": "edge", "d": "M1 2C3.5 4 5 6 7 8m-4 -7l4 7l4 -7"}
    found = beside((100, 10, []), (20, 10, [path]))
    assert found["marks"][0]["d"] == "M121 2C123.5 4 125 6 127 8m-4 -7l4 7l4 -7"


@pytest.mark.parametrize("shape", ["circle", "dots"])
def test_a_part_that_cannot_be_moved_is_refused(shape):
    with pytest.raises(ValueError, match=f"a part with the shape {shape} cannot be moved"):
        beside((10, 10, []), (10, 10, [{"shape": shape, "role": "edge"}]))
