"""Hits and misses equal those that cachegrind counted."""

import json

import pytest

from tests.simulate.cache.cachegrind import RECORD, program_of, simulated
from tests.simulate.cache.nests import NESTS

RECORDED = json.loads(RECORD.read_text())["nests"]


def test_every_nest_is_recorded():
    assert list(RECORDED) == list(NESTS)
    assert len(NESTS) >= 10


@pytest.mark.campaign
@pytest.mark.parametrize("name", NESTS)
def test_the_counts_are_cachegrinds(name):
    assert simulated(NESTS[name]) == RECORDED[name]


def test_the_c_program_has_the_arrays_where_the_simulation_puts_them():
    text = program_of(NESTS["copy"])
    assert "#define A ((volatile double *)0x40100000ul)" in text
    assert "#define B ((volatile double *)0x40106000ul)" in text
