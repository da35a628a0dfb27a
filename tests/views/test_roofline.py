"""The roofline: ceilings, points, and what is said of them."""

import itertools

import pytest

from dlcompiler.measurement.ceilings import Ceilings
from dlcompiler.runtime.provenance import Provenance
from dlcompiler.views.history.roofline import Point, roofline_scene

READS = (("L1d", 400.0), ("L2", 200.0), ("L3", 100.0), ("memory", 20.0))
CEILINGS = Ceilings(2, "float32", 250.0, READS, Provenance("measured", "a processor"))
FLOPS = 2.0 * 512**3


def point(number, gflops, memory=64 << 20, *, here=False, threads=2, **more):
    moved = {"L1d": 16 * memory, "L2": 4 * memory, "L3": memory}
    return Point(f"s{number}", f"step {number}", gflops, FLOPS, moved, 3 << 20, threads=threads,
                 is_here=here, **more)  # fmt: skip


def texts(scene):
    return [mark["text"] for mark in scene["marks"] if mark["shape"] == "text"]


def dots(scene):
    return [mark for mark in scene["marks"] if mark["shape"] == "dots"]


def test_every_ceiling_has_a_line_and_a_name_with_its_rate():
    scene = roofline_scene([], CEILINGS)
    words = texts(scene)
    for wanted in ("FMA peak, float32: 250 GFLOP/s", "L1d: 400 GB/s", "memory: 20 GB/s",
                   "measured, 2 threads"):  # fmt: skip
        assert wanted in words
    titles = [mark.get("title", "") for mark in scene["marks"] if mark["role"] == "curve"]
    assert "reads from L2, measured on a processor, with as many threads: 2" in titles
    assert scene["summary"].startswith("No state is measured yet")


def test_slanted_lines_end_at_the_peak_and_faster_ones_are_higher():
    scene = roofline_scene([point(0, 10.0)], CEILINGS)
    curves = [m for m in scene["marks"] if m["role"] == "curve" and m.get("title")]
    flat, *slanted = curves
    assert flat["y"] == flat["y2"]
    assert all(each["y2"] == pytest.approx(flat["y"], abs=0.2) for each in slanted)
    ends = [each["x2"] for each in slanted]
    assert ends == sorted(ends)


def test_points_are_numbered_in_order_and_lead_to_their_states():
    scene = roofline_scene([point(0, 1.0), point(1, 30.0, here=True)], CEILINGS)
    numbered = [mark for mark in dots(scene) if mark["glyph"] == "disc"]
    assert [mark["keys"] for mark in numbered] == [["s0"], ["s1"]]
    assert numbered[0]["xy"][1] > numbered[1]["xy"][1]  # faster is higher
    assert {"1", "2"} <= set(texts(scene))


def test_the_current_state_has_a_sign_at_each_level_it_reads_from():
    scene = roofline_scene([point(0, 30.0, here=True)], CEILINGS)
    levels = [mark for mark in dots(scene) if mark["glyph"] == "diamond"]
    assert [mark["title"].split(" from ")[1] for mark in levels] == [
        "L2, predicted",
        "L3, predicted",
    ]
    places = [mark["xy"][0] for mark in levels]
    assert places == sorted(places)  # less is moved far away
    assert "Diamonds" in scene["how_to_read"]


def test_intensities_are_those_of_the_level_behind_a_cache():
    found = point(0, 30.0).intensities()
    assert list(found) == ["L2", "L3", "memory"]
    assert found["memory"] == pytest.approx(FLOPS / (64 << 20))
    assert found["L2"] == pytest.approx(found["memory"] / 16)


def test_without_a_prediction_the_size_of_the_arrays_is_taken_and_it_says_so():
    bare = Point("s", "step", 10.0, FLOPS, {}, 3 << 20, threads=2)
    assert bare.intensities() == {"memory": FLOPS / (3 << 20)}
    rows = roofline_scene([bare], CEILINGS)["table"]["rows"]
    assert rows[-1][6] == "inputs and outputs"


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (point(0, 125.0, 1 << 20, here=True), "reaches 50% of its lowest ceiling, FMA peak."),
        (point(0, 0.01, 1 << 20, here=True), "reaches 0.004% of its lowest ceiling, FMA peak."),
        (point(0, 8.0, 1 << 28, here=True), "reaches 64% of its lowest ceiling, reads from L2."),
        (point(0, 300.0, 1 << 20, here=True), "reaches 1.2× its lowest ceiling, FMA peak"),
        (point(0, 100.0, here=True, threads=1), "another number of threads"),
        (point(0, 100.0), "The last state, step 0, reaches"),
    ],
)
def test_the_summary_names_the_lowest_ceiling(item, words):
    assert words in roofline_scene([item], CEILINGS)["summary"]


def test_what_stays_in_a_cache_is_not_held_against_the_levels_behind():
    name, _ = point(0, 200.0, 1 << 28, resident="L2").nearest(CEILINGS)
    assert name == "reads from L2"
    scene = roofline_scene([point(0, 200.0, 1 << 28, resident="L2", here=True)], CEILINGS)
    assert "All arrays fit in L2" in scene["how_to_read"]
    reached = {row[4]: row[-1] for row in scene["table"]["rows"] if row[0] == 1}
    assert (reached["L3"], reached["memory"]) == ("", "")


def test_another_number_of_threads_is_a_ring():
    scene = roofline_scene([point(0, 10.0, threads=1), point(1, 20.0)], CEILINGS)
    assert [mark["glyph"] for mark in dots(scene)] == ["ring", "disc"]
    assert "Rings" in scene["how_to_read"]


def test_labels_do_not_overlap():
    crowd = [point(n, 10.0 + 0.01 * n, here=n == 3) for n in range(12)]
    marks = [m for m in roofline_scene(crowd, CEILINGS)["marks"] if m["shape"] == "text"]
    boxes = []
    for mark in marks:
        width = 6.6 * len(mark["text"])
        left = mark["x"] - {"start": 0, "middle": width / 2, "end": width}[mark["anchor"]]
        boxes.append((left, left + width, mark["y"] - 10, mark["y"] + 2, mark["text"]))
    for a, b in itertools.combinations(boxes, 2):
        assert a[1] <= b[0] or b[1] <= a[0] or a[3] <= b[2] or b[3] <= a[2], (a[4], b[4])


@pytest.mark.parametrize("gflops", [1e-6, 1e-3, 1e5])
def test_extreme_rates_stay_inside(gflops):
    scene = roofline_scene([point(0, gflops, here=True)], CEILINGS)
    for mark in dots(scene):
        x, y = mark["xy"][:2]
        assert 0 <= x <= scene["width"]
        assert 0 <= y <= scene["height"]


def test_a_machine_without_caches_has_two_ceilings():
    bare = Ceilings(1, "float64", 10.0, (("memory", 20.0),))
    item = Point("s", "step", 5.0, FLOPS, {}, 3 << 20, is_here=True)
    assert "reaches 50%" in roofline_scene([item], bare)["summary"]
