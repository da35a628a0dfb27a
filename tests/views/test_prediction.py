"""What a learner predicted, beside what happened and why."""

import json

import pytest

from dlcompiler.views.history.prediction import (
    FACTORS,
    NOTHING_COUNTED,
    OPEN,
    Answer,
    Facts,
    reveal,
)

MOVED = {"L1d": 4000, "L2": 2000}


def metric(name, value):
    return {"name": name, "value": value, "unit": "", "text": "", "kind": "exact"}


def facts(title, seconds=None, moved=MOVED, at_once=1, operations=100):
    metrics = [metric("operations", operations), metric("at once", at_once)]
    return Facts(title, seconds, 0.0, moved, metrics)


def shown(answer, before, after, **options):
    found = reveal("split", answer, before, after, **{"has_times": True, **options})
    json.dumps(found)
    return found


@pytest.mark.parametrize(
    ("said", "before", "after", "verdict", "was"),
    [
        ("faster", 0.004, 0.001, "right", "4.0× faster: 4 ms → 1 ms"),
        ("slower", 0.004, 0.001, "wrong", "4.0× faster: 4 ms → 1 ms"),
        ("slower", 0.001, 0.004, "right", "4.0× slower: 1 ms → 4 ms"),
        ("about the same", 0.00104, 0.001, "right", "about the same: 1.04 ms → 1 ms"),
        ("faster", 0.00104, 0.001, "wrong", "about the same: 1.04 ms → 1 ms"),
        ("", 0.004, 0.001, "unsaid", "4.0× faster: 4 ms → 1 ms"),
        ("faster", None, 0.001, "open", OPEN),
        ("faster", 0.004, None, "open", OPEN),
    ],
)
def test_the_speed(said, before, after, verdict, was):
    line = shown(Answer(speed=said), facts("a", before), facts("b", after))["lines"][0]
    assert (line["verdict"], line["was"]) == (verdict, was)
    assert line["kind"] == ("" if was == OPEN else "measured")


def test_times_within_the_spread_are_about_the_same():
    before, after = Facts("a", 0.010, 0.004), Facts("b", 0.007, 0.001)
    line = shown(Answer("about the same"), before, after)["lines"][0]
    assert line["verdict"] == "right"


@pytest.mark.parametrize(
    ("ratio", "place"), [(1.2, 0), (1.5, 1), (2.9, 1), (3.0, 2), (9.9, 2), (10.0, 3), (1 / 4, 2)]
)
def test_the_factor(ratio, place):
    for n, said in enumerate(FACTORS):
        found = shown(Answer(factor=said), facts("a", 0.001 * ratio), facts("b", 0.001))
        line = found["lines"][1]
        assert (line["was"], line["verdict"] == "right") == (FACTORS[place], n == place)


@pytest.mark.parametrize(
    ("speed", "after", "verdict"),
    [
        ("faster", 0.001, "right"), ("", 0.001, "right"), ("slower", 0.001, "wrong"),
        ("slower", 0.016, "right"), ("about the same", 0.001, "wrong"),
    ],
)  # fmt: skip
def test_a_factor_of_the_other_direction_is_wrong(speed, after, verdict):
    found = shown(Answer(speed, "3× to 10×"), facts("a", 0.004), facts("b", after))
    assert found["lines"][1]["verdict"] == verdict


def test_what_was_not_said_is_not_judged():
    found = shown(Answer("faster"), facts("a", 0.004), facts("b", 0.001))
    assert [line["verdict"] for line in found["lines"]] == ["right", "unsaid"]
    assert found["summary"] == "1 of 1 right."


def test_a_factor_that_was_not_asked_for_is_left_out():
    found = shown(Answer("faster"), facts("a", 0.004), facts("b", 0.001))
    assert [line["question"] for line in found["lines"]] == ["The program is", "Traffic changes"]


@pytest.mark.parametrize(
    ("said", "after", "verdict", "was"),
    [
        ("L2", {"L1d": 4000, "L2": 500}, "right", "between L2 and memory 0.25×"),
        ("L1d", {"L1d": 4000, "L2": 500}, "wrong", "between L2 and memory 0.25×"),
        ("none", MOVED, "right", "none"),
        ("none", {"L1d": 4000, "L2": 2050}, "right", "none"),
        ("none", {"L1d": 8000, "L2": 2000}, "wrong", "between L1d and L2 2.0×"),
        ("L2", MOVED, "wrong", "none"),
        ("", {"L1d": 4000, "L2": 500}, "unsaid", "between L2 and memory 0.25×"),
    ],
)
def test_the_traffic(said, after, verdict, was):
    found = shown(Answer(level=said), facts("a"), facts("b", moved=after))
    line = found["lines"][-1]
    assert (line["verdict"], line["was"], line["kind"]) == (verdict, was, "predicted")


def test_without_times_only_the_traffic_is_revealed():
    found = shown(Answer("faster", level="L2"), facts("a"), facts("b"), has_times=False)
    assert [line["question"] for line in found["lines"]] == ["Traffic changes"]
    assert found["hint"] == ""


@pytest.mark.parametrize(
    ("before", "after", "hint"),
    [
        (None, None, "Neither state is measured yet."),
        (0.1, None, "This state is not measured yet: Run measures it."),
        (None, 0.1, "The state before, a, is not measured yet."),
        (0.1, 0.1, ""),
    ],
)
def test_it_says_what_is_still_to_be_measured(before, after, hint):
    assert shown(Answer("faster"), facts("a", before), facts("b", after))["hint"] == hint


def test_what_was_right_is_counted():
    both = facts("a", 0.004), facts("b", 0.001)
    assert shown(Answer("faster", FACTORS[0], "none"), *both)["summary"] == "2 of 3 right."
    nothing = shown(Answer(), facts("a"), facts("b"))
    assert nothing["summary"] == "Nothing is decided yet."


LESS = {"L1d": 4000, "L2": 500}


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (facts("a", 4), facts("b", 1), NOTHING_COUNTED),
        (facts("a"), facts("b", at_once=16),
         "16 iterations may run at once instead of 1."),
        (facts("a", 4), facts("b", 1, LESS),
         "4.0× less data moves between L2 and memory (predicted)."),
        (facts("a", 4), facts("b", 1, LESS, operations=200),
         "4.0× less data moves between L2 and memory (predicted), although 200 operations are "
         "computed instead of 100."),
        (facts("a", 1), facts("b", 4, LESS),
         "The counted figures say otherwise: 4.0× less data moves between L2 and memory "
         "(predicted). What they do not count, such as strides, tails and the start of threads, "
         "weighs more here."),
        (facts("a", 1), facts("b", 1, LESS),
         "The time stays although 4.0× less data moves between L2 and memory (predicted): "
         "something else limits it."),
    ],
)  # fmt: skip
def test_one_sentence_says_why(before, after, why):
    assert shown(Answer("faster"), before, after)["why"] == why
