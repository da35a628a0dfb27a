"""Campaigns go on where they stopped, count what ended them, and shrink what fails."""

import json
import random

from tests.fuzz import campaign
from tests.fuzz.campaign import FIRST_SEED, run
from tests.fuzz.checks import case_of
from tests.fuzz.expressions import random_expression
from tests.fuzz.shrinking import shrink
from tests.fuzz_schedules import replayed


def _run(folder, most):
    failed = run(folder, seconds=100, most=most, template="transpose")
    return failed, json.loads((folder / "state.json").read_text())


def test_the_next_run_goes_on(tmp_path):
    assert _run(tmp_path, 2)[1]["next_seed"] == FIRST_SEED + 2
    failed, state = _run(tmp_path, 3)
    assert (failed, state["cases"], state["next_seed"], state["runs"]) == (0, 5, FIRST_SEED + 5, 2)
    ranges = [json.loads(line)["seeds"] for line in (tmp_path / "log.jsonl").open()]
    assert ranges == [[FIRST_SEED, FIRST_SEED + 2], [FIRST_SEED + 2, FIRST_SEED + 5]]
    assert not (tmp_path / "failures.jsonl").exists()


def test_a_case_that_ended_the_process_counts(tmp_path, capsys):
    _run(tmp_path, 1)
    (tmp_path / "current").write_text(f"{FIRST_SEED + 4}\n")
    _, state = _run(tmp_path, 1)
    assert (state["internal_errors"], state["next_seed"]) == (1, FIRST_SEED + 6)
    assert f"--replay {FIRST_SEED + 4}" in capsys.readouterr().out


def test_a_failure_is_kept_and_the_run_goes_on(tmp_path, monkeypatch):
    def broken(case):
        raise ValueError("no")

    monkeypatch.setattr(campaign, "check", broken)
    monkeypatch.setattr(campaign, "shrink", lambda case, *args: case)
    failed, state = _run(tmp_path, 2)
    assert (failed, state["internal_errors"], state["cases"]) == (2, 2, 2)
    kept = [json.loads(line) for line in (tmp_path / "failures.jsonl").open()]
    assert [item["seed"] for item in kept] == [FIRST_SEED, FIRST_SEED + 1]
    assert f"--replay {FIRST_SEED}" in kept[0]["text"]


def test_shrinking_keeps_what_fails():
    name = "transpose"
    case = next(
        case
        for case in (case_of(seed, name) for seed in range(100))
        if sum(step.primitive == "split" for step in case.steps) > 1
    )
    small = shrink(
        case,
        lambda fewer: any(step.primitive == "split" for step in fewer.steps),
        lambda choices: random_expression(random.Random(0), name, choices),
    )
    assert [step.primitive for step in small.steps].count("split") == 1
    assert len(small.steps) <= 2  # what is split may have been fused
    assert {n for tensor in small.expression.inputs for n in tensor.shape} == {1}


def test_the_line_of_a_smaller_case_repeats_it():
    case = next(case for seed in range(100) if len((case := case_of(seed, "blur")).steps) > 2)
    seed = next(seed for seed in range(100) if case_of(seed, "blur").steps == case.steps)
    again = replayed(seed, "blur", [0], list(case.expression.choices))
    assert again.steps == case.steps[:1]
    assert str(again.expression) == str(case.expression)
