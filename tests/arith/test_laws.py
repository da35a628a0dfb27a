"""Each rule of the analyzer rests on laws, and each law is proved."""

import itertools

import numpy as np
import pytest
import z3

from dlcompiler import dtypes
from dlcompiler.arith import bounds, division, inversion, symbolic_bounds
from dlcompiler.arith.analyzer import extremum
from dlcompiler.arith.data import REWRITES, can_skip
from dlcompiler.arith.laws import INDEX_LAWS, c, d, rule_name, x, y
from dlcompiler.ir import Logical, binary, compare, structural_key
from dlcompiler.ir.numeric import cast_function, quiet, storage
from tests.arith.solver import Bits, Floats, Integers

INDEX_CLAIMS = [
    pytest.param(
        Bits(law.bits, signed=True) if law.bits else Integers(),
        claim,
        (*law.when, *law.claims[:number]),
        id=f"{name.rpartition('.')[2]}: {claim}",
    )
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
    *symbolic_bounds.RULES,
    *inversion.RULES,
    extremum,
)


@pytest.mark.campaign
@pytest.mark.parametrize(("terms", "claim", "when"), INDEX_CLAIMS)
def test_laws_on_indices_hold_for_all_integers(terms, claim, when):
    goal, conditions = terms.term(claim), [terms.term(condition) for condition in when]
    assert terms.prove(goal, conditions) == "proved"


@pytest.mark.parametrize("rule", INDEX_RULES, ids=rule_name)
def test_each_rule_on_indices_has_a_law(rule):
    assert INDEX_LAWS[rule_name(rule)]


# -- data -----------------------------------------------------------------------------------------

WORLDS = {
    "int": [lambda: Bits(8, signed=True), lambda: Bits(16, signed=True)],
    "uint": [lambda: Bits(8, signed=False), lambda: Bits(16, signed=False)],
    "index": [Integers],
    "float": [lambda: Floats(z3.Float16()), lambda: Floats(z3.Float32())],
    "bool": [Integers],
}


@pytest.mark.campaign
@pytest.mark.parametrize("rewrite", REWRITES, ids=lambda r: f"{r.left} -> {r.right}")
def test_rewrites_of_data_keep_the_value(rewrite):
    assert rewrite.families
    for world in itertools.chain.from_iterable(WORLDS[family] for family in rewrite.families):
        terms = world()
        claim = terms.term(rewrite.left) == terms.term(rewrite.right)
        assert terms.prove(claim) == "proved"


DATA = tuple(name for name in dtypes.SCALARS if name != "index")
SKIPPED = [route for route in itertools.product(DATA, repeat=3) if can_skip(*route)]


def values_of(dtype):
    """All values of a small dtype, the ends and some others of a large one."""
    kind = storage(dtype)
    if dtypes.is_bool(dtype):
        return np.array([False, True])
    if dtype == "float16" or (dtypes.is_int(dtype) and kind.itemsize < 4):
        return np.arange(2 ** (8 * kind.itemsize), dtype=f"uint{8 * kind.itemsize}").view(kind)
    if dtypes.is_int(dtype):
        low, high = dtypes.min_value(dtype), dtypes.max_value(dtype)
        near = [low, low + 1, high - 1, high, 0, 1, 2**24 + 1, 2**31 - 1]
        return np.array([value for value in near if low <= value <= high], kind)
    bits = np.arange(0, 2**32, 65_521, dtype=np.uint64).astype(np.uint32)
    if dtype == "bfloat16":
        bits = np.arange(2**16, dtype=np.uint32) << 16
    with quiet():
        return bits.view(np.float32).astype(kind)


@pytest.mark.parametrize("source", DATA)
def test_a_conversion_that_is_skipped_changes_nothing(source):
    values = values_of(source)
    with quiet():
        for _, way, target in (route for route in SKIPPED if route[0] == source):
            there = cast_function(source, way, vector=True)(values)
            slow = cast_function(way, target, vector=True)(there)
            fast = cast_function(source, target, vector=True)(values)
            equal = (slow == fast) | (slow != slow) & (fast != fast)
            assert equal.all(), f"{source} -> {way} -> {target}"


# -- what is no law -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("world", "claim"),
    [
        (Integers, compare("eq", x // c // d, x // (c * d))),
        (Integers, compare("eq", x // d * d + x % d, x)),  # d may be 0
        (Integers, compare("eq", binary("truncdiv", x, 2), x // 2)),
        (lambda: Bits(8, signed=True), compare("eq", x * 4 // 4, x)),
        (lambda: Bits(8, signed=True), compare("eq", x // x, 1)),
        (lambda: Bits(8, signed=True), x + 1 > x),
        (lambda: Floats(z3.Float16()), compare("eq", x - x, 0)),
        (lambda: Floats(z3.Float16()), Logical("or", x < y, x >= y)),
    ],
)
def test_what_is_no_law_is_not_proved(world, claim):
    terms = world()
    assert terms.prove(terms.term(claim)).startswith("not so for")


def test_an_addition_of_zero_changes_minus_zero():
    terms = Floats(z3.Float16())
    assert terms.prove(terms.term(x + 0) == terms.term(x)).startswith("not so for")


def test_no_rewrite_is_written_twice():
    lefts = [(structural_key(r.left), family) for r in REWRITES for family in r.families]
    assert len(set(lefts)) == len(lefts)
