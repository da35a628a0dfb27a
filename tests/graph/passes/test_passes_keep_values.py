"""Random graphs compute the same before and after each pass; ``tests.fuzz_graphs`` tries more."""

import pytest

from dlcompiler.graph.passes.pipeline import optimize
from tests.graph.pass_cases import PASSES, check
from tests.graph.random_graphs import RandomGraph
from tests.share import share_of

PARTS = 20


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(PARTS))
def test_random_graphs_keep_their_values(part):
    for seed in range(part, 2000, PARTS):
        check(seed)


def test_a_pass_that_changes_nothing_returns_its_input():
    for seed in range(share_of(60, at_least=10)):
        module = optimize(RandomGraph(seed).module(), 4)
        for name, step in PASSES.items():
            once = step(module)
            assert step(once) is once, f"{name}, seed {seed}"
