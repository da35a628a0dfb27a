"""Ten mistakes that the random schedules must notice; ``make mutants`` tries the others, too."""

import pytest

from tests.mutants.patching import Patch
from tests.mutants.running import BROKEN, MUTANTS, run

QUICK = [mutant for mutant in MUTANTS if mutant.quick]


@pytest.mark.campaign
@pytest.mark.parametrize("mutant", QUICK, ids=lambda mutant: mutant.name)
def test_mutant_is_caught(mutant):
    outcome = run(mutant, cases=100, with_tests=False)
    assert outcome.by not in ("", BROKEN), outcome.text


@pytest.mark.campaign
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_what_a_mutant_changes_is_there(mutant):
    with Patch() as patch:
        mutant.make(patch)


def test_there_are_enough_mutants():
    assert len(QUICK) >= 10
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 30
