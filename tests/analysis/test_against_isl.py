"""The race analysis agrees with isl, which is exact: no race is missed or made up."""

import random

import islpy as isl
import pytest

from dlcompiler.analysis import analyze_races
from dlcompiler.ir import PrimFunc
from dlcompiler.passes import simplify, vectorize_loops
from tests.analysis.exact import conflicts, points
from tests.analysis.mutants import lowered, mutant
from tests.analysis.programs import Programs
from tests.share import cases_of

ALL = range(200)
CASES = cases_of(ALL)


def compare(name: str, func: PrimFunc) -> None:
    """Fail unless the report on a program is what isl finds."""
    program = points(func)
    verdicts = {verdict.loop.statement: verdict for verdict in analyze_races(func).verdicts}
    for verdict in verdicts.values():
        statement = verdict.loop.statement
        found = list(conflicts(program, program.lanes.get(statement, statement)))
        if statement in program.lanes:  # all lanes load before any stores
            found = [pair for pair in found if pair[0].is_write and pair[1].is_write]
        expected = "violated" if found else "safe"
        is_told = verdict.status != "unknown" or not func.variables
        if is_told and verdict.status != expected:
            pytest.fail(f"case {name}: expected {expected}, got\n{verdict}\n{func}", pytrace=False)
        if verdict.status == "violated":
            assert is_confirmed(verdict, found), f"case {name}: {verdict}\n{func}"
    for store, loop in program.lanes.items():
        if store not in verdicts:
            races = (a.is_write and b.is_write for a, b, _ in conflicts(program, loop))
            assert not any(races), f"case {name}: lanes of {store.buffer.name} meet\n{func}"


def is_confirmed(verdict, found) -> bool:
    """Whether isl knows the accused iterations, of the accused accesses."""
    conflict = verdict.conflict
    first, second = (
        list(values.values())[: list(values).index(verdict.loop) + 1]
        for values in (conflict.witness.first, conflict.witness.second)
    )
    symbols = {f"p_{var.name}": value for var, value in conflict.witness.symbols.items()}
    given = f"[{', '.join(symbols)}]"
    where = " and ".join(f"{name} = {value}" for name, value in symbols.items())
    where = f": {where}" if where else ""
    return any(
        is_same(a, conflict.source)
        and is_same(b, conflict.sink)
        and not meet.intersect(isl.Map(f"{given} -> {{ {first} -> {second} {where} }}")).is_empty()
        for a, b, meet in found
    )


def is_same(point, access) -> bool:
    return point.buffer is access.buffer and point.is_write == access.is_write


def test_random_programs():
    for number in CASES:
        func = Programs(random.Random(f"races:{number}")).func()
        compare(f"races:{number}", func)


def test_lowered_schedules_and_their_mutants():
    compared = 0
    for number in ALL:  # in six seconds; of few, any share may have indices that depend on data
        name = f"mutant:{number}"
        rng = random.Random(name)
        func = lowered(rng, name)
        try:
            compare(name, func)
            compare(name, mutant(rng, func))
            vectors = vectorize_loops(simplify(func))
            compare(name, vectors)
            compare(name, mutant(rng, vectors))
            compared += 1
        except NotImplementedError:  # an index that depends on data
            pass
    assert compared > len(ALL) * 0.8
