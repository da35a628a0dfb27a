"""What is read before it is written, and what outputs lack: by hand, and beside isl."""

import collections
import random

import pytest

from dlcompiler.analysis import analyze_initialisation
from dlcompiler.ir import (
    Allocate,
    Assert,
    Buffer,
    For,
    If,
    Load,
    PrimFunc,
    Seq,
    Store,
    Var,
    cast,
    const,
    index_const,
)
from tests.analysis.exact import points, unwritten_elements, unwritten_reads
from tests.analysis.mutants import lowered, mutant
from tests.analysis.programs import Programs

CASES = range(100)  # all of them at any share: the rates of answers are over all

ZERO = index_const(0)
i, j, o = Var("i"), Var("j"), Var("o")
A, T = Buffer("A", (8,), "float32"), Buffer("T", (8,), "float32")
C = Buffer("C", (7,), "float32")


def loop(var, extent, body):
    return For(var, index_const(extent), "serial", body)


def copies(first, second):
    """Return the report on a program that fills T by `first` and C by `second`."""
    body = Allocate(T, Seq((first, second)))
    return analyze_initialisation(PrimFunc("main", (A, C), (C,), body))


FILL = loop(i, 8, Store(T, (i,), Load(A, (i,))))


def test_a_load_beside_what_was_written(golden):
    fill = loop(i, 7, Store(T, (i,), Load(A, (i,))))
    read = loop(j, 7, Store(C, (j,), Load(T, (j + 1,))))
    report = copies(fill, read)
    golden("beside", str(report))
    assert report.status == "violated"
    assert copies(FILL, read).status == "safe"


def test_the_order_of_statements_counts():
    read = loop(j, 7, Store(C, (j,), Load(T, (j,))))
    assert copies(FILL, read).status == "safe"
    assert copies(read, FILL).status == "violated"


def test_an_output_that_lacks_an_element():
    report = copies(FILL, loop(j, 6, Store(C, (j,), Load(T, (j,)))))
    assert "C[6] is never written" in str(report)


def test_guards_on_both_sides():
    fill = loop(o, 3, loop(i, 3, If(o * 3 + i < 8, Store(T, (o * 3 + i,), Load(A, (o * 3 + i,))))))
    read = loop(o, 2, loop(j, 4, If(o * 4 + j < 7, Store(C, (o * 4 + j,), Load(T, (o * 4 + j,))))))
    assert copies(fill, read).status == "safe"
    short = loop(o, 3, loop(i, 3, If(o * 3 + i < 6, Store(T, (o * 3 + i,), Load(A, (i,))))))
    assert copies(short, read).status == "violated"


def test_gaps_are_seen():
    odd = loop(i, 4, Store(T, (i * 2,), Load(A, (i,))))
    read = loop(j, 7, Store(C, (j,), Load(T, (j,))))
    assert copies(odd, read).status == "violated"
    both = Seq((odd, loop(i, 4, Store(T, (i * 2 + 1,), Load(A, (i,))))))
    assert copies(both, read).status == "unknown", "two stores together are not joined"


def test_an_index_that_is_read_from_memory_is_not_trusted_to_stay():
    at = Buffer("at", (1,), "int32")
    place = cast(Load(at, (ZERO,)), "index")
    body = Seq((
        Store(at, (ZERO,), const(0, "int32")),
        Store(T, (place,), Load(A, (ZERO,))),
        Store(at, (ZERO,), const(1, "int32")),
        Store(C, (ZERO,), Load(T, (place,))),
    ))  # fmt: skip
    func = PrimFunc("main", (A, C), (C,), Allocate(at, Allocate(T, body)))
    read = next(v for v in analyze_initialisation(func).verdicts if v.read and v.buffer is T)
    assert read.status == "unknown"


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


@pytest.mark.campaign
def test_random_programs():
    counts = collections.Counter()
    for number in CASES:
        name = f"reads:{number}"
        counts += compare(name, Programs(random.Random(name)).func())


@pytest.mark.campaign
def test_lowered_schedules_and_their_mutants():
    plain, broken = collections.Counter(), collections.Counter()
    for number in CASES:
        name = f"mutant:{number}"
        rng = random.Random(name)
        func = lowered(rng, name)
        try:
            plain.update(compare(name, func))
            broken.update(compare(name, mutant(rng, func)))
        except NotImplementedError:  # an index that depends on data
            pass
    assert plain["violated", True] == 0
    assert plain["safe", False] > 0.9 * plain.total()
    assert broken["violated", True] > 0.8 * (broken["unknown", True] + broken["violated", True])


def test_what_an_assertion_ends_before_is_no_gap():
    first = For(i, index_const(8), "serial", Store(T, (i,), Load(A, (i,))))
    outside = For(j, index_const(7), "serial", Store(C, (j,), Load(T, (j + 2,))))
    assert copies(first, outside).status == "violated"  # T[8] is none of its elements
    check = For(o, index_const(7), "serial", Assert(o + 2 < 8, "no"))
    assert copies(first, Seq((check, outside))).violations == ()
    part = For(i, index_const(7), "serial", Store(T, (i,), Load(A, (i,))))
    report = copies(part, Seq((check, outside)))
    assert "T[7] is read at j=5, but not written before" in str(report)
