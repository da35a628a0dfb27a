"""What is read before it is written, and what outputs lack: by hand, and beside isl."""

import collections
import random

import pytest

from dlcompiler.analysis import analyze_initialisation
from dlcompiler.ir import Allocate, Buffer, For, Load, PrimFunc, Seq, Store, Var, const, index_const
from tests.analysis.exact import points, unwritten_elements, unwritten_reads
from tests.analysis.mutants import lowered, mutant
from tests.analysis.programs import Programs

CASES = 120


def compare(name: str, func: PrimFunc) -> collections.Counter[str]:
    """Fail where the report contradicts isl; count how often it does not know."""
    program, counts = points(func), collections.Counter()
    missing = collections.defaultdict(list)
    for read, where in unwritten_reads(program):
        missing[read.buffer, read.indices, read.loops].append(where)
    for verdict in analyze_initialisation(func).verdicts:
        if verdict.read is None:
            sets = [unwritten_elements(program, verdict.buffer)]
            where = verdict.witness and verdict.witness.element
        else:
            loops = tuple(loop.statement for loop in verdict.read.loops)
            sets = missing[verdict.buffer, verdict.read.indices, loops]
            where = verdict.witness and tuple(verdict.witness.point.values())
        is_bad = any(not found.is_empty() for found in sets)
        counts[verdict.status, is_bad] += 1
        message = f"case {name}: {verdict}\n{func}"
        assert verdict.status != "safe" or not is_bad, message
        if verdict.status == "violated":
            point = type(sets[0])(f"{{ [{', '.join(map(str, where))}] }}")
            assert any(not (found & point).is_empty() for found in sets), message
    return counts


def test_random_programs():
    counts = collections.Counter()
    for number in range(CASES):
        name = f"reads:{number}"
        counts += compare(name, Programs(random.Random(name)).func())


def test_lowered_schedules_and_their_mutants():
    print(1)
    plain = broken = collections.Counter()
    for number in range(CASES):
        name = f"mutant:{number}"
        rng = random.Random(name)
        func = lowered(rng, name)
        try:
            plain = plain + compare(name, func)
            broken = broken + compare(name, mutant(rng, func))
        except NotImplementedError:  # an index that depends on data
            pass
    assert plain["violated", True] == 0
    print(plain, broken)
