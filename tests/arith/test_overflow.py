"""Which data keeps the arithmetic of an index from overflowing."""

from dlcompiler.arith import Analyzer, Interval
from dlcompiler.arith.overflow import limits_of_data, overflow
from dlcompiler.ir import Buffer, IfThenElse, Load, Var, cast, compare

i = Var("i")
ELEMENT = cast(Load(Buffer("I", (8,), "int64"), (i,)), "index")


def _limits(index):
    return [str(condition) for condition in limits_of_data(index, Analyzer({}).interval)]


def test_a_larger_factor_leaves_smaller_elements():
    assert _limits(ELEMENT * 3)[1] == "index(I[i]) <= 281474976710656"
    assert _limits(ELEMENT * 2**20)[1] == "index(I[i]) <= 2147483648"
    assert _limits(ELEMENT) == []


def test_only_the_arithmetic_of_the_index_counts():
    inner = cast(Load(Buffer("J", (8,), "int64"), (ELEMENT * 2**40,)), "index")
    limits = limits_of_data(inner * 3, Analyzer({}).interval)
    assert [str(x) for x in limits if x.a is inner][1].endswith("<= 281474976710656")


def test_shared_parts_are_looked_at_once():
    index = ELEMENT
    for _ in range(100):  # 2**100 ways lead to the element
        index = IfThenElse(compare("lt", i, 3), index, index)
    assert _limits(index + 1)[1] == "index(I[i]) <= 281474976710656"
    assert overflow(index + 1, lambda var: Interval(0, 7)) is None


def test_the_smallest_part_that_does_not_fit():
    big = i * 2**62
    assert overflow((big + 1) % 10, lambda var: Interval(0, 3)) is big
