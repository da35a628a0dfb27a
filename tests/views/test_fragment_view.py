"""The picture of a tile in the registers of a warp."""

from dlcompiler import te
from dlcompiler.views.device.fragment import fragment_scene


def test_each_element_is_drawn_with_its_lane():
    fragments = te.tensor_intrin("mma_f16_16x8x16").fragments
    scenes = [fragment_scene(fragment) for fragment in fragments.values()]
    assert [scene["title"] for scene in scenes] == [
        "C and D: 16×8 float32 in a warp",
        "A: 16×16 float16 in a warp",
        "B: 16×8 float16 in a warp",
    ]
    cells = {mark["title"]: mark for scene in scenes for mark in scene["marks"] if "title" in mark}
    assert "row 9, column 3: lane 5, element 3, register 1" in cells
    for scene in scenes:
        assert len({tuple(row[:2]) for row in scene["table"]["rows"]}) == len(
            scene["table"]["rows"]
        )
        drawn = [mark["text"] for mark in scene["marks"] if mark.get("role") == "label"]
        assert len(set(drawn)) == len(drawn) == len(scene["table"]["rows"])


def test_a_notebook_shows_it():
    (*_, b) = te.tensor_intrin("mma_s8_16x8x32").fragments.values()
    html = b._repr_html_()
    assert "data:image/svg+xml" in html
    assert "each of 32 lanes holds 8 elements in 2 registers" in html


def test_an_intrinsic_of_one_thread_has_none():
    assert te.tensor_intrin("dot4_u8s8_4x1").fragments == {}
