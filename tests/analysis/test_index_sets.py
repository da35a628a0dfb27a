"""Sets of indices against Python's sets."""

import random

import pytest

from dlcompiler.analysis.index_sets import IndexSet

FACTORS, EXTENTS = (1, 1, 2, 3, 4, 5, 8, 12, -1, -3, 0), (0, *(1, 2, 3, 4, 5, 7) * 3)


def pair(rng):
    """Return the same random set twice: as an `IndexSet`, and as Python's."""
    made = IndexSet.single(rng.randint(-5, 5))
    plain = {made.low}
    for _ in range(rng.randint(0, 4)):
        factor, extent = rng.choice(FACTORS), rng.choice(EXTENTS)
        made = made.plus(factor, extent)
        plain = {value + factor * n for value in plain for n in range(extent)}
        if rng.random() < 0.3:
            low = rng.randint(-10, 20)
            high = low + rng.randint(-1, 25)
            made = made.clipped(low, high)
            plain = {value for value in plain if low <= value <= high}
    return made, plain


def is_same(made, plain):
    ends = not plain or (made.low, made.high) == (min(plain), max(plain))
    return ends and made.is_exact and made.count == len(plain) and set(made) == plain


@pytest.mark.parametrize("seed", range(20))
def test_operations_are_those_of_sets(seed):
    rng = random.Random(seed)
    for _ in range(100):
        (a, plain_a), (b, plain_b) = pair(rng), pair(rng)
        assert is_same(a, plain_a)
        assert is_same(a.union(b), plain_a | plain_b)
        assert is_same(a.common(b), plain_a & plain_b)
        assert is_same(a.plus_set(b), {x + y for x in plain_a for y in plain_b})
        assert plain_b <= plain_a or not a.contains(b)
        factor = rng.choice((1, 2, 5, -1, -3))
        assert is_same(a.scaled(factor), {factor * x for x in plain_a})
        for size in (1, 4, 16):
            assert a.blocks(size) == len({x // size for x in plain_a})


def test_a_set_too_long_for_bits_is_one_around_it():
    sparse = IndexSet.single(0).plus(1, 2).plus(3, 1 << 24)
    assert not sparse.is_exact
    assert sparse.count >= 1 << 25
