"""Barriers in the analyses: threads of a block are ordered by them, and by nothing else."""

import collections
import itertools
import random

import pytest

from dlcompiler.analysis import analyze_initialisation, analyze_races
from dlcompiler.analysis.accesses import collect_accesses
from dlcompiler.analysis.races import ORDER
from dlcompiler.analysis.values import evaluate
from dlcompiler.arith import Analyzer
from dlcompiler.ir import (
    Allocate,
    Barrier,
    Buffer,
    Compare,
    For,
    If,
    Load,
    PrimFunc,
    Seq,
    Store,
    Var,
    const,
    index_const,
)

bx, tx, ty, k = Var("bx"), Var("tx"), Var("ty"), Var("k")
n = Var("n")
T = Buffer("T", (32,), "float32", "shared")
A, C = Buffer("A", (256,), "float32"), Buffer("C", (32,), "float32")
ONE = const(1.0, "float32")
PROGRAMS = 300


def loop(var, extent, kind, *body):
    extent = index_const(extent) if isinstance(extent, int) else extent
    return For(var, extent, kind, Seq(body) if len(body) > 1 else body[0])


def threads(*body, extent=32):
    return loop(tx, extent, "threadIdx.x", *body)


def less(a, b):
    return Compare("lt", a, index_const(b) if isinstance(b, int) else b)


def func(body, symbols=()):
    return PrimFunc("main", (A, C), (C,), Allocate(T, body), symbols=symbols)


def statuses(body, symbols=()):
    program = func(body, symbols)
    return analyze_races(program).status, analyze_initialisation(program).status


FILL = Store(T, (tx,), Load(A, (tx,)))
MIRROR = Store(C, (tx,), Load(T, (31 - tx,)))


def test_threads_read_what_others_wrote_before_a_barrier():
    assert statuses(threads(FILL, Barrier(), MIRROR)) == ("safe", "safe")
    assert statuses(threads(FILL, MIRROR))[0] == "violated"
    assert statuses(threads(Store(C, (tx,), ONE), Barrier(), MIRROR))[1] == "violated"


def test_what_is_read_before_the_barrier_is_not_written_yet():
    late = threads(MIRROR, Barrier(), FILL)
    report = analyze_initialisation(func(late))
    assert "T[0] is read at tx=31, but not written before" in str(report)


def step(*order):
    parts = {"copy": Store(T, (tx,), Load(A, (tx * 8 + k,))), "sum": MIRROR, "|": Barrier()}
    return threads(loop(k, 8, "serial", *(parts[name] for name in order)))


@pytest.mark.parametrize(
    ("order", "races"),
    [
        (("|", "copy", "|", "sum"), "safe"),
        (("copy", "|", "sum", "|"), "safe"),
        (("copy", "|", "sum"), "violated"),
        (("|", "copy", "sum"), "violated"),
    ],
)
def test_each_step_is_dated(order, races):
    assert statuses(step(*order))[0] == races


def test_the_dates_of_the_documentation():
    accesses = collect_accesses(func(step("|", "copy", "|", "sum"))).items
    epochs = [str(Analyzer({}).simplify(access.epoch)) for access in accesses]
    assert epochs == ["k*2 + 1", "k*2 + 2", "k*2 + 2"]


def test_a_loop_of_unknown_length_is_dated():
    row = Store(T, (tx,), Load(T, (31 - tx,)) + ONE)
    assert statuses(threads(FILL, Barrier(), loop(k, n, "serial", row)), (n,))[0] == "violated"
    copied = (Store(T, (tx,), ONE), Barrier(), MIRROR, Barrier())
    assert statuses(threads(loop(k, n, "serial", *copied)), (n,))[0] == "safe"
    inner = loop(ty, n, "serial", *copied)
    assert statuses(threads(loop(k, n, "serial", inner)), (n,))[0] == "safe"


def test_a_barrier_under_a_condition_proves_nothing():
    perhaps = If(less(bx, 1), Barrier())
    nest = loop(bx, 2, "blockIdx.x", threads(FILL, perhaps, MIRROR))
    report = analyze_races(func(nest))
    assert {verdict.status for verdict in report.verdicts} == {"violated", "unknown"}
    assert "it is not known whether a barrier is between them" in str(report)


def test_barriers_do_not_order_blocks():
    flipped = Store(C, (bx * 16 + tx,), Load(C, (31 - bx * 16 - tx,)))
    nest = loop(bx, 2, "blockIdx.x", threads(flipped, Barrier(), flipped, extent=16))
    assert [v.status for v in analyze_races(func(nest)).verdicts] == ["violated", "safe"]


def test_what_one_thread_covers_is_not_what_all_do():
    """A condition on the reading thread says nothing on those that wrote."""
    some = less(tx, 5)
    fill, read = If(some, Store(T, (tx,), ONE)), If(some, Store(C, (tx,), Load(T, (tx + 1,))))
    assert statuses(threads(fill, Barrier(), read))[1] != "safe"
    fits = If(some, Store(C, (tx,), Load(T, (4 - tx,))))
    assert statuses(threads(fill, Barrier(), fits))[0] == "safe"


def test_virtual_threads_meet_at_barriers():
    place = ty * 16 + tx
    fill, read = Store(T, (place,), ONE), Store(C, (place,), Load(T, (31 - place,)))
    for parts, races in (((fill, Barrier(), read), "safe"), ((fill, read), "violated")):
        nest = loop(ty, 2, "vthread", threads(*parts, extent=16))
        assert statuses(nest)[0] == races


class Programs:
    """Random programs of one block, whose threads all come to each barrier."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.variables = [ty] if self.random.random() < 0.3 else []

    def func(self):
        fill = loop(k, 8, "serial", Store(T, (tx * 8 + k,), ONE))
        first = (fill, Barrier()) if self.random.random() < 0.5 else ()
        nest = loop(tx, 4, "threadIdx.x", *first, self.seq(2))
        return func(loop(ty, 2, "threadIdx.y", nest) if self.variables else nest)

    def seq(self, depth):
        return Seq(tuple(self.stmt(depth) for _ in range(self.random.randint(2, 4))))

    def stmt(self, depth):
        choice = self.random.random()
        if choice < 0.35:
            return Barrier()
        if choice < 0.55 and depth:
            var = Var(f"k{len(self.variables)}")
            self.variables.append(var)
            body = self.seq(depth - 1)
            self.variables.remove(var)
            return loop(var, self.random.randint(1, 3), "serial", body)
        store = Store(T, (self.index(),), Load(T, (self.index(),)) + ONE)
        if choice < 0.7:
            store = Store(T, store.indices, ONE)
        if self.random.random() < 0.2:
            return If(less(self.index(), 8), store)
        return store

    def index(self):
        pick = self.random.choice
        total = index_const(pick((0, 0, 1, 4)))
        for var in (tx, *self.variables):
            total = total + var * pick((0, 0, 1, 2, 4) if var is not tx else (0, 1, 1, 4))
        return total


def run(program):
    """Run each thread alone; return (thread, element, epoch, is written) of each access."""
    block = program.body.body
    loops = [block, block.body] if block.kind == "threadIdx.y" else [block]
    found = []
    for point in itertools.product(*(range(int(loop.extent.value)) for loop in loops)):
        at = dict(zip((loop.var for loop in loops), point, strict=True))
        found += [(point, *access) for access in thread(loops[-1].body, at, [0])]
    return found


def has_conflict(accesses):
    """Tell whether two threads meet at an element between the same barriers."""
    touched = {}
    for point, element, epoch, is_write in accesses:
        touched.setdefault((element, epoch), set()).add((point, is_write))
    return any(
        len({point for point, _ in found}) > 1 and any(is_write for _, is_write in found)
        for found in touched.values()
    )


def reads_unwritten(accesses):
    """Tell whether an element is read that nothing wrote before; for programs without a race."""
    first = {}
    for _, element, epoch, is_write in accesses:
        if is_write:
            first[element] = min(epoch, first.get(element, epoch))
    own = set()
    for point, element, epoch, is_write in accesses:
        if is_write:
            own.add((point, element))
        elif first.get(element, epoch) >= epoch and (point, element) not in own:
            return True
    return False


def thread(stmt, at, epoch):
    """Yield the element, the barriers before and whether it is written, of each access."""
    match stmt:
        case Barrier():
            epoch[0] += 1
        case Seq(statements):
            for item in statements:
                yield from thread(item, at, epoch)
        case For(var, extent, _, body):
            for value in range(int(extent.value)):
                yield from thread(body, {**at, var: value}, epoch)
        case If(condition, then, _):
            if evaluate(condition, at):
                yield from thread(then, at, epoch)
        case Store(_, (place,), value):
            if value is not ONE:
                yield evaluate(value.a.indices[0], at), epoch[0], False
            yield evaluate(place, at), epoch[0], True


def test_random_programs_are_judged_as_their_threads_run():
    found = collections.Counter()
    for seed in range(PROGRAMS):
        program = Programs(seed).func()
        accesses = run(program)
        races = analyze_races(program)
        is_racy = has_conflict(accesses)
        assert races.status == ("violated" if is_racy else "safe"), f"{seed}\n{program}\n{races}"
        found[races.status] += 1
        if not is_racy:
            report = analyze_initialisation(program)
            status = max(
                (v.status for v in report.verdicts if v.read), key=ORDER.index, default="safe"
            )
            expected = "violated" if reads_unwritten(accesses) else "safe"
            assert status in (expected, "unknown"), f"{seed}\n{program}\n{report}"
            found[f"{status} reads"] += 1
    kinds = ("safe", "violated", "safe reads", "violated reads")
    assert min(found[kind] for kind in kinds) > 3, found
