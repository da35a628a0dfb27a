"""A watched run: what is read of it, in words, as a page that stands still, and its table."""

import json
import re
import time
import xml.etree.ElementTree as ET

import pytest

from dlcompiler.errors import TuningError
from dlcompiler.views.render.scene import scene_html
from dlcompiler.views.tuning import (
    Order,
    best_so_far,
    compare_tuners,
    headline,
    nice_ceiling,
    time_spent,
    trials_table,
    tuning_html,
    watched,
)
from dlcompiler.views.tuning.headline import sentence
from tests import watched_runs
from tests.static_pictures import pictures_in
from tests.watched_runs import HOSTILE, ended, seen


@pytest.fixture(scope="module")
def run():
    return ended(40)


def texts(scene):
    return [mark["text"] for mark in scene["marks"] if mark["shape"] == "text"]


def curve(scene):
    """The line of the best so far."""
    (line,) = (m for m in scene["marks"] if m["role"] == "curve" and m["shape"] == "path")
    return line


def keys(scene):
    return [key for mark in scene["marks"] for key in mark.get("keys", ())]


# -- what is read --------------------------------------------------------------------------------


def test_a_run_is_read_once(run):
    first = watched(run)
    again = watched(run, first)
    assert [row.index for row in first.rows] == list(range(40))
    assert all(a is b for a, b in zip(first.rows, again.rows, strict=True))
    assert first.best.gflops == pytest.approx(run.best.gflops)
    assert first.counts == run.counts
    assert (first.most_trials, first.remaining_s) == (40, None)


def test_trials_that_come_later_are_added():
    going = watched_runs.start(40, permits=5)
    early = watched(going)
    going.pool.permits = 40
    going.wait(60)
    late = watched(going, early)
    assert len(late.rows) == 40
    assert late.rows[: len(early.rows)] == early.rows


def test_the_headline_is_the_run_in_words(run):
    model = headline(watched(run))
    facts = dict(model["facts"])
    assert facts["trials"] == "40 of 40"
    assert facts["failed"] == "4 crashed, 5 wrong answer"
    assert "tile_m=" in facts["best config"]
    assert model["is_over"]
    assert model["text"].startswith("finished, 40 of 40 trials; best ")
    assert headline(seen(state="running"))["text"].endswith("about 20 s to go")


def test_a_run_that_only_time_ends_has_no_number_of_trials():
    assert dict(headline(seen(most=None, state="stopped"))["facts"])["trials"] == "60"
    assert best_so_far(seen(most=None, state="stopped"))["summary"].startswith("60 trials;")


# -- the curve -----------------------------------------------------------------------------------


def test_every_trial_is_on_the_curve_and_failures_stand_by_reason():
    model = seen()
    scene = best_so_far(model)
    assert sorted(keys(scene)) == sorted(f"trial {row.index}" for row in model.rows)
    counts = model.counts
    assert f"refused: {counts['refused']}" in texts(scene)
    assert f"wrong answer: {counts['wrong answer']}" in texts(scene)
    assert f"{counts['refused']} refused" in scene["summary"]


def test_the_line_rises_to_the_best():
    model = seen()
    rows = best_so_far(model)["table"]["rows"]
    rates = [row[2] for row in rows]
    assert rates == sorted(rates)
    assert rows[-1][0] == model.best.index
    (line,) = [
        m for m in best_so_far(model)["marks"] if m["role"] == "curve" and m["shape"] == "path"
    ]
    assert line["d"].count("V") == len(rows) - 1


def test_a_time_is_on_a_logarithmic_scale_downward():
    scene = best_so_far(seen(), shown="time", against="seconds")
    assert "measured time of a call, log scale" in texts(scene)
    assert "seconds since the start [s]" in texts(scene)
    heights = [float(y) for y in re.findall(r"V([\d.]+)", curve(scene)["d"])]
    assert heights == sorted(heights)  # downward on a page is to the larger


def test_a_chosen_trial_is_marked():
    model = seen()
    (ring,) = [m for m in best_so_far(model, chosen=9)["marks"] if m["role"] == "warn"]
    assert ring["keys"] == ["trial 9"]
    assert not [m for m in best_so_far(model, chosen=4)["marks"] if m["role"] == "warn"]  # refused


def test_a_new_trial_changes_the_last_marks_only():
    before, after = best_so_far(seen(59)), best_so_far(seen(60))
    old = {json.dumps(mark) for mark in before["marks"]}
    new = [mark for mark in after["marks"] if json.dumps(mark) not in old]
    assert len(new) <= 4


def test_ten_thousand_trials_are_thinned_and_say_so():
    model = seen(10_000, 10_000)
    scene = best_so_far(model)
    assert "every 4th is drawn" in scene["summary"]
    assert scene["table"]["rows"][-1][0] == model.best.index
    assert len(json.dumps(scene)) < 150_000


def test_nothing_is_drawn_of_nothing():
    assert best_so_far(seen(0))["summary"] == "No trial is done yet."
    assert keys(best_so_far(seen(0))) == []


# -- where the time goes -------------------------------------------------------------------------


def test_the_time_is_that_of_the_clock():
    scene = time_spent(seen(60))
    assert scene["table"]["rows"] == [
        ["searching", 6.0, "20.0%"], ["building", 12.0, "40.0%"],
        ["running", 6.0, "20.0%"], ["waiting", 6.0, "20.0%"],
    ]  # fmt: skip
    assert scene["summary"].startswith("30 s so far; searching 20%")
    assert scene["summary"].endswith("about 20 s to go.")


def test_each_round_has_its_bar():
    titles = [m["title"] for m in time_spent(seen(60))["marks"] if m["shape"] == "rect"]
    assert "round 3, building: 1.6 s" in titles
    assert "round 6, running: 800 ms" in titles


# -- the table -----------------------------------------------------------------------------------


def test_trials_are_sorted_and_those_without_a_value_come_last():
    model = seen()
    up = trials_table(model, Order("seconds", is_descending=False))
    down = trials_table(model, Order("seconds", is_descending=True))
    assert up["rows"][0]["key"] == f"trial {model.best.index}"
    assert down["rows"][0]["key"] != up["rows"][0]["key"]
    for table in (up, down):
        assert all(row["outcome"] != "ok" for row in table["rows"][-3:])


def test_trials_are_filtered_by_outcome():
    table = trials_table(seen(), Order(outcome="refused"))
    assert {row["outcome"] for row in table["rows"]} == {"refused"}
    assert dict(table["outcomes"])["refused"] == table["count"]


def test_a_page_has_a_hundred_rows():
    table = trials_table(seen(250, 250), Order(page=2))
    assert (len(table["rows"]), table["pages"], table["count"]) == (50, 3, 250)
    assert table["summary"] == "Trials 201 to 250 of 250 in this order."
    assert trials_table(seen(250, 250), Order(page=99))["page"] == 2


# -- tuners compared -----------------------------------------------------------------------------


def test_tuners_are_compared_by_median_and_quartiles():
    fast = [[n * k for n in range(1, 11)] for k in (9, 10, 10, 11)]
    slow = [[5.0] * 10, [6.0] * 10]
    scene = compare_tuners({"model": fast, "random": slow}, unit="GFLOP/s")
    rows = scene["table"]["rows"]
    assert rows[0][:5] == ["model", 4, 100.0, 97.5, 102.5]
    assert rows[1][:3] == ["random", 2, 5.5]
    assert rows[1][5] == "not reached"
    assert scene["summary"].startswith("0.95 of the best known (110 GFLOP/s) is reached")
    assert sum(mark["role"] == "band" for mark in scene["marks"]) == 2


def test_a_run_that_ended_sooner_keeps_its_value():
    scene = compare_tuners({"a": [[1, 2, 9]], "b": [[1, 1, 1, 1, 5]]})
    assert [row[2] for row in scene["table"]["rows"]] == [9.0, 5.0]


def test_runs_are_compared_by_seconds_too(run):
    scene = compare_tuners({"a": [run, seen()], "b": [seen(seed=2)]}, against="seconds")
    assert "seconds since the start [s]" in texts(scene)
    assert scene["table"]["rows"][0][1] == 2


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(TuningError, match="no run has a trial yet"):
        compare_tuners({"a": []})
    with pytest.raises(TuningError, match="a run given as numbers has no times"):
        compare_tuners({"a": [[1, 2]]}, against="seconds")


# -- standing still ------------------------------------------------------------------------------


def test_a_run_is_a_page_without_script(run):
    html = tuning_html(run)
    ET.fromstring(html)
    assert HOSTILE not in html
    assert "<script" not in html
    assert "Predicted and measured" in html
    assert len(html.encode()) < 60_000


def test_a_long_run_is_a_small_page():
    html = tuning_html(ended(900, batch=100))
    assert len(html.encode()) < 60_000
    root = ET.fromstring(html)
    titles = [picture.find("title").text for picture in pictures_in(html)]
    (left_out,) = [each.text for each in root.iter("p") if "too large" in (each.text or "")]
    assert titles
    assert left_out.endswith("in a notebook: Where the time goes, The space, knob by knob.")
    assert not [title for title in titles if title in left_out]


def test_hostile_words_are_words_in_every_picture():
    model = seen(note=HOSTILE)
    scene = compare_tuners({HOSTILE: [model]}, title=HOSTILE, unit=HOSTILE)
    (picture,) = pictures_in(scene_html(scene))
    assert HOSTILE in "".join(picture.itertext())
    assert not list(picture.iter("img"))


@pytest.mark.parametrize(
    ("value", "ceiling"), [(1.0, 1.0), (91.2, 100.0), (100.1, 120.0), (0.001, 0.001), (0.0, 1.0)]
)
def test_a_scale_ends_at_a_round_number(value, ceiling):
    assert nice_ceiling(value) == ceiling


def test_the_time_left_is_estimated_once_there_are_some_trials():
    going = watched_runs.start(40, permits=2)
    wait = time.monotonic() + 60
    while len(going.trials) < 2 and time.monotonic() < wait:
        time.sleep(0.01)
    seen = watched(going)
    assert seen.remaining_s is None
    assert sentence(seen).endswith("; estimating the time left")
    summary = time_spent(seen)["summary"]
    assert " so far; " in summary
    assert summary.endswith("; estimating the time left.")
    going.pool.permits = 20
    while len(going.trials) < 20 and time.monotonic() < wait:
        time.sleep(0.01)
    assert " to go" in sentence(watched(going))
    going.stop()
    going.wait(60)
    assert "estimating" not in sentence(watched(going))
