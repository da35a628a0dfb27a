"""The ladder of a branch: bars, lines, and what is said where there is none."""

import json

import pytest

from dlcompiler.views.history.ladder import EMPTY, Reference, Rung, ladder, ladder_scene
from dlcompiler.views.render.scene import scene_html

FLOPS = 2.0 * 512**3


def rung(number, seconds=None, status=None, *, is_rate=True, **more):
    rate = FLOPS / seconds / 1e9 if seconds and is_rate else None
    status = status or ("measured" if seconds else "empty")
    return Rung(f"s{number}", f"step {number}", status, seconds, seconds and 1e-4, rate, **more)


def reference(text, seconds, is_rate=True):
    return Reference(text, seconds, FLOPS / seconds / 1e9 if is_rate else None)


STORY = [rung(0, 0.1), rung(1), rung(2, 0.02), rung(3, 0.01, is_here=True)]


def test_small_rates_have_a_smaller_unit():
    rungs = [Rung(f"{n}", "a step", "measured", 1e-6, gflops=g) for n, g in ((1, 4e-4), (2, 0.08))]
    found = ladder(rungs, [Reference("peak", 1e-9, 25.0)])
    assert found["unit"] == "MFLOP/s"
    assert [row["value"] for row in found["rows"]] == ["0.4", "80"]
    assert found["lines"][0]["text"] == "peak: 25,000"
    assert ladder([*rungs, Rung("3", "fast", "measured", 1e-6, gflops=0.1)])["unit"] == "GFLOP/s"


def test_faster_states_are_higher_and_equal_ratios_are_equal_distances():
    model = ladder([rung(0, 0.4), rung(1, 0.2), rung(2, 0.1)])
    shares = [row["share"] for row in model["rows"]]
    assert shares == sorted(shares)
    assert shares[1] - shares[0] == pytest.approx(shares[2] - shares[1], abs=0.002)
    assert model["unit"] == "GFLOP/s"
    assert [row["value"] for row in model["rows"]] == ["0.671", "1.34", "2.68"]


def test_changes_are_against_the_last_measured_state():
    assert [row["change"] for row in ladder(STORY)["rows"]] == ["", "", "5.0×", "2.0×"]
    assert ladder(STORY)["summary"] == (
        "3 of 4 states measured; the last one has 10× the speed of the first."
    )


def test_without_float_operations_bars_are_times():
    model = ladder([rung(0, 0.012, is_rate=False), rung(1, 0.004, is_rate=False)])
    assert (model["unit"], [row["value"] for row in model["rows"]]) == ("ms", ["12", "4"])
    assert model["rows"][0]["share"] > model["rows"][1]["share"]
    assert "lower is faster" in model["how_to_read"]


def test_lines_stand_on_the_scale_of_the_bars():
    model = ladder(STORY, [reference("numpy", 0.02), reference("peak", 0.002)])
    numpy, peak = model["lines"]
    assert numpy["share"] == model["rows"][2]["share"]
    assert peak["share"] > model["rows"][3]["share"]
    assert numpy["text"] == "numpy: 13.4"


@pytest.mark.parametrize("seconds", [1e-9, 3e-6, 0.5, 4000.0])
def test_one_state_alone_has_a_bar_that_can_be_seen(seconds):
    (row,) = ladder([rung(0, seconds)])["rows"]
    assert 0.05 < row["share"] <= 1


def test_where_nothing_is_measured_it_says_what_to_do():
    model = ladder([rung(0), rung(1, is_here=True)])
    assert (model["unit"], model["hint"]) == ("", EMPTY)
    assert model["summary"] == "No state of this branch is measured."
    assert [row["value"] for row in model["rows"]] == ["–", "–"]
    assert model["rows"][0]["label"] == "step 0; not measured: go there, then Run"
    assert model["rows"][1]["label"] == "step 1; not measured: Run; current state"


def test_the_current_state_without_a_time_asks_for_a_run():
    model = ladder([rung(0, 0.1), rung(1, is_here=True)])
    assert model["hint"] == "Run measures the current state."
    assert ladder(STORY)["hint"] == ""


def test_wrong_and_failed_states_have_no_bar_and_say_why():
    rows = [
        rung(0, status="wrong", note="3 elements differ"),
        rung(1, status="failed"),
        rung(2, 1.0),
    ]
    model = ladder(rows)
    assert [row["value"] for row in model["rows"]] == ["✕ wrong", "✕ failed", "0.268"]
    assert [row["share"] for row in model["rows"]][:2] == [0, 0]
    assert model["rows"][0]["label"] == "step 0; wrong; 3 elements differ"


def test_the_table_has_every_number_once_with_its_unit():
    table = ladder(STORY, [reference("numpy", 0.02)])["table"]
    assert table["columns"] == ["state", "time", "±", "GFLOP/s", "threads", "status", "note"]
    assert table["rows"][2] == ["step 2", "20 ms", "100 µs", "13.4", 1, "measured", ""]
    assert table["rows"][1][1:4] == ["", "", ""]
    assert table["rows"][-1][:2] == ["numpy", "20 ms"]


def test_the_picture_has_a_row_for_each_state_whose_marks_lead_there():
    model = ladder(STORY, [reference("numpy", 0.02), reference("peak", 0.002)], ["No more."])
    scene = ladder_scene(model)
    assert {key for mark in scene["marks"] for key in mark.get("keys", ())} == {
        "s0", "s1", "s2", "s3"
    }  # fmt: skip
    words = [mark["text"] for mark in scene["marks"] if mark["shape"] == "text"]
    assert "GFLOP/s (logarithmic)" in words
    assert "No more." in words
    assert all(mark.get("y", 0) <= scene["height"] for mark in scene["marks"])
    assert "<script" not in scene_html(scene)
    json.dumps(model)


def test_texts_of_the_picture_do_not_overlap():
    lines = [reference(f"a library with a long name {n}", 0.02 / (n + 1)) for n in range(4)]
    scene = ladder_scene(ladder(STORY, lines))
    texts = [mark for mark in scene["marks"] if mark["shape"] == "text" and mark["x"] > 0]
    rows = {}
    for mark in texts:
        rows.setdefault(round(mark["y"]), []).append(mark)
    assert all(len(marks) == 1 for marks in rows.values())


def test_no_state_at_all_is_no_error():
    assert ladder([])["rows"] == []
    assert ladder_scene(ladder([]))["marks"]


def test_times_of_code_for_several_targets_are_not_compared():
    rungs = [rung(1, 0.4, target="cpu"), rung(2, 0.1, target="c"), rung(3, 0.1, target="c")]
    model = ladder(rungs)
    assert [row["change"] for row in model["rows"]] == ["", "", "1.0×"]
    assert model["summary"].endswith("of code for several targets: these are not compared.")


def test_long_notes_of_the_picture_go_on_in_the_next_line():
    note = (
        "No peak: a program is faster than the peak, so the machine was busy then: it is measured"
    )
    plain = ladder([Rung("a", "create", "measured", 0.1)])
    scene = ladder_scene({**plain, "notes": [f"{note} again, and again, and again"]})
    words = [mark["text"] for mark in scene["marks"] if mark["shape"] == "text"]
    assert f"{note} again, and again, and again" in " ".join(words)
    assert max(map(len, words)) < 90
    assert scene["height"] > ladder_scene(plain)["height"] + 30
