"""A tuning run as a view model, a picture and a table."""

import json
import xml.etree.ElementTree as ET

import pytest

from dlcompiler.autotune import Result, tune
from dlcompiler.space import Workload
from dlcompiler.views.tuning import nice_ceiling, points, tuning, tuning_html, tuning_picture

HOSTILE = "<img src=x onerror=alert(1)> & \"quoted\" 'too'"


class Measurer:
    """Every third trial fails."""

    def __init__(self, fails=3):
        self.fails = fails
        self.number = 0

    def measure(self, config, best_s):
        self.number += 1
        if self.fails and self.number % self.fails == 0:
            return Result("wrong answer", message=f"{HOSTILE}\nsecond line")
        return Result("ok", (1.0 / (self.number * 1e3),) * 3)

    def interrupt(self):
        pass

    def close(self):
        pass


def ended(trials=8, fails=3, **options):
    workload = Workload.of("matmul", m=64, n=64, k=64)
    return tune(workload, trials=trials, measurer=Measurer(fails), tuner="random", **options).wait()


def test_the_model_is_json_and_complete():
    run = ended()
    model = json.loads(json.dumps(tuning(run)))
    assert model["title"] == "matmul(m=64, n=64, k=64, dtype=float32)"
    assert (model["state"], model["trials"], model["total"]) == ("finished", 8, 8)
    assert model["counts"] == [["ok", 6], ["wrong answer", 2]]
    assert model["best"]["trial"] == 7
    assert model["best"]["time"] == "125 µs"
    assert model["text"].startswith(
        "finished, 8 of 8 trials; best 4.19 GFLOP/s at trial 7; 2 wrong"
    )


def test_points_are_what_is_new():
    run = ended()
    series = points(run)
    assert [value is None for value in series] == [False, False, True] * 2 + [False, False]
    assert points(run, 6) == series[6:]
    assert points(run, 8) == []


def test_the_picture_is_xml_with_a_mark_for_each_trial():
    run = ended()
    root = ET.fromstring(tuning_picture(tuning(run), points(run)))
    paths = [item for item in root if item.tag.endswith("path")]
    dots, fails, line = (item.get("d") for item in paths)
    assert dots.count("M") == 6
    assert fails.count("M") == 2
    assert line.count("M") == 1
    assert line.count("V") == 5
    assert root.get("aria-label").startswith("Tuning of matmul(")


def test_no_trial_and_no_best_are_shown_too():
    failed = ended(trials=2, fails=1)
    assert tuning(failed)["best"] is None
    assert "2 wrong answer" in tuning_html(failed)
    ET.fromstring(tuning_picture(tuning(failed), []))


def test_every_text_is_escaped():
    html = tuning_html(ended())
    assert "<img" not in html
    assert "&lt;img src=x onerror=alert(1)&gt;" in html
    assert "second line" not in html
    ET.fromstring(html)


def test_the_table_of_a_long_run_is_cut():
    html = tuning_html(ended(trials=150))
    assert "… and " in html
    assert len(html.encode()) < 60_000


@pytest.mark.parametrize("value", [1e-9, 0.7, 1.0, 3.3, 99.9, 100.0, 429.0, 1e6])
def test_the_axis_ends_at_a_round_number_above(value):
    top = nice_ceiling(value)
    assert value <= top * 1.001
    assert top <= 2 * value
