"""A share of the campaign ``python -m tests.fuzz_accelerators``; the commit decides which."""

import pytest

from tests.codegen.accelerator import random_machines, random_programs
from tests.share import commit_number, share_of

FIRST = commit_number() % 1_000_000


@pytest.mark.parametrize("made", [random_programs, random_machines], ids=["vta", "user"])
def test_random_programs_compute_what_they_mean(made):
    seeds = range(FIRST, FIRST + share_of(120, at_least=12))
    built = 0
    for seed in seeds:
        try:
            built += not random_programs.check(seed, 3, made.case(seed))
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
    assert built >= len(seeds) // 4
