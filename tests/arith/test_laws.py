"""Each rule of the analyzer rests on laws, and each law is proved."""

import pytest

from dlcompiler.arith import bounds, division, elimination
from dlcompiler.arith.analyzer import extremum
from dlcompiler.arith.laws import INDEX_LAWS, rule_name
from tests.arith.solver import Integers

INDEX_CLAIMS = [
    pytest.param(claim, (*law.when, *law.claims[:number]), id=f"{name.rpartition('.')[2]}: {claim}")
    for name, laws in INDEX_LAWS.items()
    for law in laws
    for number, claim in enumerate(law.claims)
]
INDEX_RULES = (
    *division.CONSTANT_RULES,
    *division.SYMBOLIC_RULES,
    *division.JOIN_RULES,
    division.multiples,
    division.truncated,
    *bounds.BOUNDS.values(),
    *elimination.RULES,
    extremum,
)


@pytest.mark.parametrize(("claim", "when"), INDEX_CLAIMS)
def test_laws_on_indices_hold_for_all_integers(claim, when):
    assert Integers().prove(claim, when) == "proved"


@pytest.mark.parametrize("rule", INDEX_RULES, ids=rule_name)
def test_each_rule_on_indices_has_a_law(rule):
    assert INDEX_LAWS[rule_name(rule)]
