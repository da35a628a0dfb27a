"""The race analysis beside isl, which is exact: neither a race missed nor one made up."""

import random

import pytest

from dlcompiler.analysis import analyze_races
from dlcompiler.ir import PrimFunc
from tests.analysis.exact import conflicts, points
from tests.analysis.mutants import lowered, mutant
from tests.analysis.programs import Programs

CASES = 200


def compare(name: str, func: PrimFunc) -> None:
    """Fail unless the report on a program is what isl finds."""
    program = points(func)
    for verdict in analyze_races(func).verdicts:
        loop = verdict.loop.statement
        found = list(conflicts(program, loop))
        expected = "violated" if found else "safe"
        if verdict.status != expected:
            pytest.fail(f"case {name}: expected {expected}, got\n{verdict}\n{func}", pytrace=False)
        if found:
            assert is_confirmed(verdict, found), f"case {name}: {verdict}\n{func}"


def is_confirmed(verdict, found) -> bool:
    """Whether isl knows the accused iterations, of the accused accesses."""
    conflict = verdict.conflict
    first, second = (
        list(values.values())[: list(values).index(verdict.loop) + 1]
        for values in (conflict.witness.first, conflict.witness.second)
    )
    return any(
        is_same(a, conflict.source)
        and is_same(b, conflict.sink)
        and not meet.intersect(type(meet)(f"{{ {first} -> {second} }}")).is_empty()
        for a, b, meet in found
    )


def is_same(point, access) -> bool:
    return point.buffer is access.buffer and point.is_write == access.is_write


def test_random_programs():
    for number in range(CASES):
        func = Programs(random.Random(f"races:{number}")).func()
        compare(f"races:{number}", func)


def test_lowered_schedules_and_their_mutants():
    compared = 0
    for number in range(CASES):
        name = f"mutant:{number}"
        rng = random.Random(name)
        func = lowered(rng, name)
        try:
            compare(name, func)
            compare(name, mutant(rng, func))
            compared += 1
        except NotImplementedError:  # an index that depends on data
            pass
    assert compared > CASES * 0.8
