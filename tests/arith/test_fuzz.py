"""Random expressions of each integer family keep their value; `make fuzz-arith` tries more."""

import pytest

from tests.arith.random_expressions import FAMILIES, check, names, random_case, shrunk

pytestmark = pytest.mark.campaign
COUNT, PARTS = 20_000, 16


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("family", FAMILIES)
def test_random_expressions(family, part):
    for name in names(family, f"ci-{part}", COUNT // PARTS):
        try:
            check(random_case(name))
        except Exception:
            case = shrunk(random_case(name))
            print(case)
            check(case)
            raise
