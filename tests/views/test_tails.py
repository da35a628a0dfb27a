"""What a split costs, in words, against the bounds that are inferred after it."""

import math
import random
import re

import pytest

from dlcompiler import te
from dlcompiler.schedule import create_schedule, has_bounds, infer_bounds
from dlcompiler.schedule.moves.enumeration import extents_of
from dlcompiler.views.loops.tails import tail_of_step, tail_text, without_tail
from tests.fuzz.expressions import random_expression
from tests.fuzz.walks import Walk


@pytest.mark.parametrize(
    ("extent", "numbers", "text"),
    [
        (256, {"factor": 32}, "32 divides 256: 8 blocks of 32, no tail"),
        (31, {"factor": 8}, "8 does not divide 31: 4 blocks of 8, 1 of 32 iterations guarded, 3 %"),
        (31, {"nparts": 4}, "4 does not divide 31: 4 blocks of 8, 1 of 32 iterations guarded, 3 %"),
        (
            10,
            {"nparts": 6},
            "6 does not divide 10: 6 blocks of 2, 2 of 12 iterations guarded, 17 %",
        ),
        (8, {"factor": 9}, "9 is more than 8: 1 block of 8"),
        (8, {"factor": 8}, "8 divides 8: 1 block of 8, no tail"),
        (
            100_001,
            {"factor": 2},
            "2 does not divide 100,001: 50,001 blocks of 2, 1 of 100,002 iterations guarded, "
            "less than 1 %",
        ),
    ],
)
def test_texts(extent, numbers, text):
    assert tail_text(extent, **numbers) == text


def test_a_symbol_says_that_it_may_not_divide():
    n = te.size_var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    text = tail_of_step(s.state, "split", "B", {"axis": B.op.axis[0], "factor": 8})
    assert text == "n may not be a multiple of 8: iterations beyond it are guarded"


def test_both_loops_of_a_tile(plain, tensors):
    i, j = tensors[2].op.axis
    args = {"x": i, "y": j, "x_factor": 32, "y_factor": 48}
    assert tail_of_step(plain.state, "tile", "C", args) == (
        "i: 32 divides 64: 2 blocks of 32, no tail; "
        "j: 48 does not divide 64: 2 blocks of 48, 32 of 96 iterations guarded, 33 %"
    )


@pytest.mark.parametrize("value", [0, -3, 2.5, "x", True, None])
def test_what_is_no_number_of_blocks_has_no_tail(plain, tensors, value):
    args = {"axis": tensors[2].op.axis[0], "factor": value}
    assert tail_of_step(plain.state, "split", "C", args) == ""


@pytest.mark.parametrize("seed", range(12))
def test_the_loops_are_as_long_as_the_text_says(seed):
    """On random schedules: blocks times size is what bound inference finds after the split."""
    rng = random.Random(seed)
    schedule = create_schedule([t.op for t in random_expression(rng).outputs])
    Walk(rng, schedule).run(5)
    for stage in schedule.state.stages:
        for leaf in () if stage.is_placeholder else stage.leaves:
            args = {"axis": leaf, "factor": rng.choice((1, 2, 3, 4, 7, 50))}
            attempt = schedule.attempt("split", stage.name, args)
            if not attempt.verdict or not has_bounds(attempt.state):
                continue
            after = infer_bounds(attempt.state).stages[stage.name].extents
            text = tail_of_step(schedule.state, "split", stage.name, args)
            found = re.search(r"([\d,]+) blocks? of ([\d,]+)", text)
            if found is None:
                assert not isinstance(extents_of(schedule.state, stage)[leaf], int)
                continue
            blocks, size = (int(number.replace(",", "")) for number in found.groups())
            assert math.prod(after[axis] for axis in attempt.result) == blocks * size, (seed, text)


@pytest.mark.parametrize("seed", range(8))
def test_what_is_offered_leaves_no_tail(seed):
    """On random schedules: the number that is offered divides, and there is one if any does."""
    rng = random.Random(seed)
    schedule = create_schedule([t.op for t in random_expression(rng).outputs])
    Walk(rng, schedule).run(5)
    for stage in schedule.state.stages:
        extents = {} if stage.is_placeholder else extents_of(schedule.state, stage)
        for leaf, extent in extents.items():
            name = rng.choice(("factor", "nparts"))
            args = {"axis": leaf, name: rng.randint(1, 9)}
            better = without_tail(schedule.state, "split", stage.name, args)
            if better:
                assert extent % args[name]
                text = tail_of_step(schedule.state, "split", stage.name, {**args, **better})
                assert text.endswith("no tail")
