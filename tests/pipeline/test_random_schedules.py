"""Random schedules of random expressions compute what the expressions say.

A few cases of each kind; ``python -m tests.fuzz_schedules`` tries more of them for as long as one
likes. A failure names its case and prints the schedule as Python.
"""

import random

import pytest

from tests.fuzz.expressions import TEMPLATES, random_expression
from tests.fuzz.schedules import check, random_case

CASES_OF_EACH = 8


@pytest.mark.parametrize("template", sorted(TEMPLATES))
def test_random_schedules(template):
    for number in range(CASES_OF_EACH):
        name = f"ci:{template}:{number}"
        rng = random.Random(name)
        case = random_case(rng, random_expression(rng, template))
        try:
            check(case)
        except Exception as error:
            pytest.fail(f"case {name}: {error!r}\n{case}")
