"""What the model knew, why it predicts what it does, and the space that was searched."""

import json
import math
from dataclasses import replace

import pytest

from dlcompiler.autotune.explain import Explanation, explain, importances
from dlcompiler.autotune.projection import Projection
from dlcompiler.errors import TuningError
from dlcompiler.space import Config, Knob, Space, Workload
from dlcompiler.views.tuning import (
    TrialRow,
    Watched,
    contributions,
    coordinates,
    correlation,
    ground,
    importance,
    knob_map,
    plane_map,
    predicted_measured,
    why_before,
)
from dlcompiler.views.tuning.explained import MOST_BARS
from dlcompiler.views.tuning.notable import MOST_WALKERS
from dlcompiler.views.tuning.one_scene import run_scene
from tests.watched_runs import Model, seen, space

WIDTHS = (420, 640, 1200)


@pytest.fixture(scope="module")
def known():
    return ground(space())


def keys(scene):
    return {key for mark in scene["marks"] for key in mark.get("keys", ())}


# -- predicted and measured ----------------------------------------------------------------------


def test_every_prediction_that_was_measured_is_a_sign():
    model = seen()
    expected = {f"trial {r.index}" for r in model.rows if r.predicted_s and r.seconds}
    assert keys(predicted_measured(model)) == expected


def test_the_summary_says_how_well_it_ranked():
    scene = predicted_measured(seen())
    assert "52 trials were predicted" in scene["summary"]
    assert f"rank correlation {correlation(seen().rows):.2f}" in scene["summary"]
    assert "in round 6 it is 0.80; its top-k recall is 50%" in scene["summary"]
    assert scene["table"]["rows"][-1] == [6, 48, 8, 0.8, 0.5]


def test_a_sign_on_the_line_was_predicted_exactly():
    model = seen()
    scene = predicted_measured(model)
    exact = {f"trial {r.index}" for r in model.rows if r.predicted_s and r.predicted_s == r.seconds}
    assert exact
    (line,) = [m for m in scene["marks"] if m["role"] == "capacity"]
    for mark in scene["marks"]:
        for n, key in enumerate(mark.get("keys", ())):
            x, y = mark["xy"][2 * n : 2 * n + 2]
            is_on_line = abs((x - line["x"]) - (line["y"] - y)) < 0.3
            assert is_on_line == (key in exact)


def test_without_a_model_it_says_so():
    assert predicted_measured(seen(model=False))["summary"].startswith("No trial was predicted yet")


# -- why -----------------------------------------------------------------------------------------


def explained(parts, shared=10.0, names="abcdefghijklmnopqrst"):
    return Explanation(0, tuple(names[: len(parts)]), tuple(parts), shared)


def test_an_explanation_adds_up_to_the_prediction():
    model = Model(space())
    (found,) = explain(model, (77,))
    assert found.columns == model.columns
    assert found.predicted_s == pytest.approx(2.0 ** -float(model.predict([77])[0]))


def test_an_explanation_compares_with_the_mean_of_others():
    model, others = Model(space()), tuple(space().sample(9, 4))
    plain, found = (explain(model, (77,), reference)[0] for reference in ((), others))
    assert found.predicted_s == pytest.approx(plain.predicted_s)
    assert found.shared == pytest.approx(float(model.predict(others).mean()))
    means = [sum(each) / 9 for each in zip(*(e.parts for e in explain(model, others)), strict=True)]
    assert found.parts == pytest.approx([a - b for a, b in zip(plain.parts, means, strict=True)])
    assert all(part == pytest.approx(0) for part in explain(model, (77,), (77,))[0].parts)


def test_importances_are_sorted():
    found = importances(Model(space()))
    assert [share for _, share in found] == sorted((s for _, s in found), reverse=True)
    assert sum(share for _, share in found) == pytest.approx(1)


def test_the_most_important_features_come_first_and_the_rest_is_one_bar():
    items = [(f"feature {n}", 1 / 30) for n in range(30)]
    scene = importance(items, model="trees")
    rows = scene["table"]["rows"]
    assert len(rows) == MOST_BARS + 1
    assert rows[-1][0] == f"the other {30 - MOST_BARS} together"
    assert sum(row[1] for row in rows) == pytest.approx(1, abs=0.01)
    assert "trees decides mostly by these features: feature 0 (3%)" in scene["summary"]
    assert importance([])["summary"] == "The model has learned nothing yet."


def test_contributions_say_what_each_feature_does():
    scene = contributions(explained([1.0, -0.5, 0.0]), "trial 3", values={"a": True},
                          trial_s=0.001)  # fmt: skip
    assert scene["table"]["rows"] == [
        ["a", "yes", "2.0× faster", "a"], ["b", "", "1.4× slower", "b"],
    ]  # fmt: skip
    assert scene["summary"] == (
        "The model as it is now predicts 691 µs for trial 3, which took 1 ms in its trial; the "
        "average prediction for the successful trials is 977 µs."
    )
    bars = [m for m in scene["marks"] if m["shape"] == "rect"]
    assert bars[0]["x"] > bars[1]["x"]


def test_many_small_features_are_one_bar_with_their_product():
    scene = contributions(explained([0.1] * 20), "trial 0")
    name, _, said, _ = scene["table"]["rows"][-1]
    assert name == "the other 6 together"
    assert said == "1.5× faster"


def test_a_before_b_says_by_what_and_whether_it_was_true():
    a, b = explained([1.0, 0.25, 0.3]), explained([0.0, 0.75, 0.3])
    scene = why_before(a, b, ("trial 1", "trial 2"), values=({"a": 4}, {"a": 8}),
                       trial_s=(2.0, 1.0))  # fmt: skip
    assert scene["summary"] == (
        "The model as it is now predicts 334 µs for trial 1 (A) and 472 µs for trial 2 (B): A is "
        "1.4× faster. In their trials they took 2 s and 1 s: A was 2.0× slower."
    )
    assert scene["table"]["rows"] == [
        ["a", "4", "8", "2.0× faster", "a"], ["b", "", "", "1.4× slower", "b"],
    ]  # fmt: skip
    assert "a: 4 | 8" in json.dumps(scene)


def test_a_and_its_twin_are_as_fast():
    scene = why_before(explained([1.0]), explained([1.0]), ("trial 1", "trial 2"))
    assert "A is as fast" in scene["summary"]
    assert "no feature makes a difference" in json.dumps(scene["marks"])


# -- the space -----------------------------------------------------------------------------------


def test_the_ground_has_the_legal_points_and_the_users_own():
    found = space()
    own = found.at(next(found.allowed()))
    known = ground(found, own)
    assert known.own == found.index_of(own)
    assert all(found.forbidden_by(found.at(point)) is None for point in known.legal[:50])
    with pytest.raises(TuningError, match="not a value for each knob"):
        ground(found, Config({"x": 1}, "other"))


def test_every_measured_trial_is_a_way_across_the_knobs(known):
    model = seen()
    scene = coordinates(model, known, chosen=9)
    assert keys(scene) == {f"trial {row.index}" for row in model.rows if row.seconds}
    ways = [m for m in scene["marks"] if m["role"] == "edge"]
    assert all(way["d"].count("L") == len(space().knobs) for way in ways)
    best = [row for row in scene["table"]["rows"] if row[0] == "pack"]
    assert best[0][2] == "yes"


def test_a_value_that_no_legal_config_has_is_marked(known):
    scene = coordinates(seen(), known)
    impossible = [m["text"] for m in scene["marks"] if m.get("text", "").startswith("×")]
    legal = {n for n, _ in known.legal_values}
    assert len(legal) == len(space().knobs)
    values = sum(len(knob.values) for knob in space().knobs)
    assert len(impossible) == values - len(known.legal_values)


def test_a_map_of_two_knobs_has_the_best_of_each_pair(known):
    model = seen()
    scene = knob_map(model, known, "tile_m", "tile_n")
    assert sum(row[2] for row in scene["table"]["rows"]) == len(model.rows)
    values = space().at(model.best.point).values
    first = scene["table"]["rows"][0]
    assert first[:2] == [str(values["tile_m"]), str(values["tile_n"])]
    assert first[3] == pytest.approx(model.best.gflops, rel=1e-3)


def test_a_map_from_above_has_every_trial(known):
    model = seen()
    plane = Projection(space(), known.legal)
    scene = plane_map(model, known, plane, chosen=3)
    assert keys(scene) == {f"trial {row.index}" for row in model.rows}
    assert "walkers" in json.dumps(scene["marks"])
    assert 0 < sum(plane.shares) <= 1


def test_the_walkers_way_is_drawn(known):
    scene = plane_map(seen(), known, Projection(space(), known.legal))
    assert sum(m["role"] == "edge" for m in scene["marks"]) == 3


def test_the_plane_is_that_of_the_widest_directions():
    flat = Space(Workload.of("x"), [Knob("one", (1, 2)), Knob("wide", (1, 2, 4, 8))])
    points = [0, 2, 4, 6]  # only "wide" differs
    plane = Projection(flat, points)
    assert plane.knobs[0] == "wide"
    assert plane.shares[0] == pytest.approx(1)
    places = [x for x, _ in plane.places(points)]
    assert places == sorted(places)
    assert math.isclose(places[1] - places[0], 1 / 3)


@pytest.mark.parametrize("width", WIDTHS)
def test_marks_stay_inside_their_picture(known, width):
    model = seen()
    scenes = [
        predicted_measured(model, width=width),
        coordinates(model, known, width=width),
        knob_map(model, known, "tile_m", "block", width=width),
        plane_map(model, known, Projection(space(), known.legal), width=width),
        contributions(explained([0.3, -0.2]), "trial 1", width=width),
        importance([("x", 0.7), ("y", 0.3)], width=width),
    ]
    for scene in scenes:
        for mark in scene["marks"]:
            xs = [mark.get("x", 0), mark.get("x2", 0), mark.get("x", 0) + mark.get("w", 0)]
            xs += mark.get("xy", [])[::2]
            assert min(xs) >= 0, (scene["title"], mark)
            assert max(xs) <= width, (scene["title"], mark)
            assert 0 <= mark.get("y", 0) <= scene["height"], (scene["title"], mark)


def test_of_many_walkers_a_few_are_drawn(known):
    model = seen()
    crowd = tuple(row.point for row in model.rows[:40])
    rounds = [replace(each, walkers=crowd[n:]) for n, each in enumerate(model.rounds[:2])]
    scene = plane_map(replace(model, rounds=rounds), known, Projection(space(), known.legal))
    assert sum(m["role"] == "edge" for m in scene["marks"]) == MOST_WALKERS
    assert f"{MOST_WALKERS} of 40 walkers" in json.dumps(scene["marks"])


def test_rounds_are_whole_numbers():
    scene = predicted_measured(seen(24))
    names = [m["text"] for m in scene["marks"] if m["shape"] == "text" and m["x"] > 340]
    assert "1.5" not in names


def test_of_many_trials_the_map_draws_some_and_the_best(known):
    model = seen(5000, 5000, seed=3)
    chosen = next(row.index for row in model.rows if row.index % 4 == 1)
    scene = plane_map(model, known, Projection(space(), known.legal), chosen=chosen)
    assert "every 4th trial is drawn" in scene["summary"]
    assert {f"trial {model.best.index}", f"trial {chosen}"} <= keys(scene)
    assert len(keys(scene)) <= 5000 / 4 + 2


@pytest.mark.parametrize(
    "knobs", [[], [Knob("a", (1,))], [Knob("p", (False, True)), Knob("b", ("x<y", "z"))]]
)
@pytest.mark.parametrize("outcome", ["ok", "crashed"])
def test_the_smallest_spaces_are_drawn(knobs, outcome):
    small = Space(Workload.of("x"), knobs)
    row = TrialRow(0, 0, outcome, *((1e-3, 2.0) if outcome == "ok" else ()))
    for rows in ((), (row,)):
        model = Watched("x", "running", small, 10, rows)
        known = ground(small)
        scenes = [
            coordinates(model, known),
            plane_map(model, known, Projection(small, known.legal)),
        ]
        assert all("nan" not in json.dumps(scene).lower() for scene in scenes)


def test_a_knob_that_there_is_not_is_refused(known):
    with pytest.raises(TuningError, match="there is no such knob") as error:
        knob_map(seen(), known, "tile_x", "tile_m")
    assert "tile_m, tile_n" in str(error.value)
    with pytest.raises(TuningError, match="takes across= and up=, or neither"):
        run_scene(seen(), "map", across="tile_m")


@pytest.mark.parametrize("width", [420.0, 640.0])
def test_long_names_of_features_go_on_in_the_next_line(width):
    names = ["bytes that the second read of the stage C moves beyond the second level", "lanes"]
    scene = importance([(name, 0.5) for name in names], width=width)
    words = [mark for mark in scene["marks"] if mark["shape"] == "text"]
    shown = " ".join(mark["text"] for mark in words if mark["role"] == "label")
    assert shown == " ".join(names)
    bars = [mark for mark in scene["marks"] if mark["shape"] == "rect"]
    last = max(mark["y"] for mark in words if mark["text"] != "lanes" and mark["role"] == "label")
    assert bars[1]["y"] > last
    assert max(mark["y"] for mark in words) < scene["height"]
