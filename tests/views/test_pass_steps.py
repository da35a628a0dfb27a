"""The passes of a pipeline, as steps and as differences of programs."""

import json
from itertools import pairwise

import pytest

from dlcompiler.bench.programs import chain, packed_conv2d, six_step_gemm
from dlcompiler.pipeline import lower
from dlcompiler.pipeline.pipelines import passes_of
from dlcompiler.target import resolve
from dlcompiler.views import loop_tree
from dlcompiler.views.code.pass_steps import pass_difference, pass_steps

CPU_PASSES = passes_of(resolve("cpu"))


@pytest.fixture(
    params=[
        lambda: six_step_gemm(64),
        lambda: packed_conv2d(16, 8, 8),
        lambda: chain(4),
    ],
    scope="module",
)
def run(request):
    s, args = request.param()
    changes = []
    func = lower(s, args, observers=[changes.append])
    return s, func, changes


def test_all_passes_are_there_in_order(run):
    steps = pass_steps(run[2], CPU_PASSES)["steps"]
    assert [step["name"] for step in steps] == ["loop nests", *(item.name for item in CPU_PASSES)]
    assert [step["number"] for step in steps] == list(range(1, len(steps) + 1))
    assert all(step["about"].endswith(".") for step in steps)
    assert json.loads(json.dumps(steps)) == steps


def test_node_changes_add_up(run):
    steps = pass_steps(run[2], CPU_PASSES)["steps"]
    for before, step in pairwise(steps):
        assert before["nodes"] + step["node_change"] == step["nodes"]
        if step["is_unchanged"]:
            assert step["node_change"] == 0


def test_needs_and_gives_are_those_of_the_pipeline(run):
    known = {item.name: item for item in CPU_PASSES}
    for step in pass_steps(run[2], CPU_PASSES)["steps"][1:]:
        assert set(step["requires"]) == known[step["name"]].requires
        assert set(step["establishes"]) == known[step["name"]].establishes


def test_the_first_change_is_open_unless_another_is_chosen(run):
    model = pass_steps(run[2], CPU_PASSES)
    opened = model["steps"][model["open"] - 1]
    assert not opened["is_unchanged"]
    vectorized = pass_steps(run[2], CPU_PASSES, "vectorize")
    assert vectorized["steps"][vectorized["open"] - 1]["name"] == "vectorize"
    assert pass_steps(run[2], CPU_PASSES, "no such pass")["open"] == model["open"]


def test_differences_lead_from_the_nests_to_the_program(run):
    _, func, changes = run
    texts = []
    for change in changes:
        lines = pass_difference(change)["lines"]
        after = [line["text"] for line in lines if line["status"] != "removed"]
        before = [line["text"] for line in lines if line["status"] != "added"]
        if change.before is not None:
            assert before == texts[-1]
        if change.is_unchanged:
            assert before == after
        texts.append(after)
    assert texts[-1] == str(func).splitlines()


def test_every_loop_is_in_every_pass(run):
    s, _, changes = run
    loops = {row["key"] for row in loop_tree(s)["rows"] if row["type"] == "loop"}
    for change in changes:
        lines = pass_difference(change)["lines"]
        assert loops <= {key for line in lines for key in line["keys"]}, change.name
