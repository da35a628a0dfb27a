"""Advice as rows."""

import json
from dataclasses import replace

import pytest

from dlcompiler import te
from dlcompiler.analysis.advice import RULES, parallelism
from dlcompiler.pipeline.checks import default_args
from dlcompiler.schedule import create_schedule
from dlcompiler.schedule.state import Step
from dlcompiler.schedule.trace import decode
from dlcompiler.target.presets import X86_64_AVX2
from dlcompiler.views.loops.loop_tree import loop_tree
from dlcompiler.views.memory.scopes import memory_scopes
from dlcompiler.views.moves.advice import MOST_ROWS, advice
from tests.analysis.test_footprint import random_schedule

MACHINE = replace(X86_64_AVX2, cores=4)


def test_rows_point_at_loops_of_the_tree(plain, tensors):
    shown = advice(plain, tensors, MACHINE)
    keys = {row["key"] for row in loop_tree(plain)["rows"]}
    assert json.loads(json.dumps(shown)) == shown
    assert len(shown["rows"]) >= 2
    assert {row["key"] for row in shown["rows"]} <= keys
    assert shown["summary"] == f"{len(shown['rows'])} pieces of advice, from {len(RULES)} rules."


def test_steps_can_be_taken_and_end_the_advice(plain, tensors):
    (row,) = [r for r in advice(plain, tensors, MACHINE)["rows"] if r["rule"].startswith("stride")]
    step = Step(**row["step"])
    assert row["step_text"] == str(step) == "reorder C (k, j)"
    plain.apply(step.primitive, step.stage, decode(plain.state, step))
    after = {row["rule"] for row in advice(plain, tensors, MACHINE)["rows"]}
    assert not {"stride-one axis not innermost", "reduction with a single sum"} & after


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_schedules_get_advice_that_can_be_taken(first, monkeypatch):
    monkeypatch.setattr(parallelism, "LEAST_WORK", 10)
    for seed in range(first, first + 20):
        s = random_schedule(seed)
        args, keys = default_args(s), {row["key"] for row in loop_tree(s)["rows"]}
        for row in advice(s, args, MACHINE)["rows"]:
            assert row["key"] in keys, seed
            if row["step"] is not None:
                there, step = s.fork("tried"), Step(**row["step"])
                there.apply(step.primitive, step.stage, decode(there.state, step))
        marks = memory_scopes(s, args, MACHINE)["marks"]
        assert {key for mark in marks for key in mark.get("keys", ())} <= keys, seed


def test_nothing_to_say(plain, tensors):
    A = te.placeholder((64, 64), name="A")
    B = te.compute((64, 64), lambda i, j: A[i, j] * 2.0, name="B")
    s = create_schedule(B.op)
    s[B].vectorize(B.op.axis[1])
    shown = advice(s, [A, B], MACHINE)
    assert shown == {
        "rows": [],
        "summary": f"No advice: none of the {len(RULES)} rules applies to this schedule. Those "
        "about its speed apply when it was measured.",
    }


def test_only_the_first_are_shown():
    A = te.placeholder((64, 64), name="A")
    tensor = A
    for _ in range(30):
        tensor = tensor + 1.0
    shown = advice(create_schedule(tensor.op), [A, tensor], MACHINE)
    assert len(shown["rows"]) == MOST_ROWS
    assert shown["summary"] == (
        f"30 pieces of advice, from {len(RULES)} rules; the first 20 are shown."
    )


def test_unknown_sizes_get_none():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    shown = advice(create_schedule(B.op), [A, B], MACHINE)
    assert shown["summary"] == "No advice: sizes are known only when the program runs."
