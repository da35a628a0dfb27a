"""Random reads between guarded pages: a part of the campaign that `tests.fuzz_reads` runs."""

import pytest

from tests.fuzz_reads import run_batch


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(0, 200, 50))
def test_accepted_programs_stay_inside_their_arrays(first, capsys):
    end, outcomes = run_batch(first, 50)
    assert end == first + 50
    assert set(outcomes) <= {"computed", "raised", "refused"}, capsys.readouterr().out
    assert outcomes.count("computed") > 10
