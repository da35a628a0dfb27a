"""z3, the analysis and the simulator agree on barriers: which are needed, and which are enough.

Of two accesses to shared memory by different threads of a block, one a store, z3 is asked whether
they may be to one element with no barrier between them. All threads come to each barrier, so that a
statement has an epoch, the number of barriers before it: a sum over the loops around.
"""

from dataclasses import dataclass

import numpy as np
import pytest
import z3

from dlcompiler import te
from dlcompiler.analysis import analyze_races
from dlcompiler.errors import ProgramError
from dlcompiler.ir import (
    Allocate,
    Barrier,
    Const,
    Expr,
    For,
    If,
    Load,
    PrimFunc,
    Seq,
    Store,
    Var,
    index_const,
    is_in_block,
    is_thread,
    rewrite,
    substitute,
    walk,
)
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule
from dlcompiler.simulate import interpret
from tests.arith.solver import Integers
from tests.schedule.test_device_programs import bound
from tests.schedule.test_shared_memory import product, tiled


@dataclass
class Access:
    """One load or store of shared memory."""

    node: Load | Store
    loops: tuple[For, ...]
    conditions: tuple[Expr, ...]
    epoch: Expr
    """How many barriers a thread has passed before it."""


class Accesses:
    """The accesses of a block to shared memory, in the order of the text."""

    def __init__(self, func):
        self.found = []
        self.visit(func.body, (), (), index_const(0))

    def visit(self, stmt, loops, conditions, epoch):
        """Note the accesses of a statement; return how many barriers a thread passes in it."""
        match stmt:
            case Barrier():
                return 1
            case Seq(items):
                passed = 0
                for item in items:
                    passed += self.visit(item, loops, conditions, epoch + passed)
                return passed
            case For(var, Const(extent), _, body):
                inside = self.passed(body, loops) if not is_thread(stmt.kind) else 0
                here = epoch + var * inside if inside else epoch
                passed = self.visit(body, (*loops, stmt), conditions, here)
                if is_in_block(stmt.kind) and not any(is_in_block(loop.kind) for loop in loops):
                    return passed + 1  # the threads of a block meet behind their loops
                return passed if is_thread(stmt.kind) else passed * extent
            case If(condition, then, otherwise):
                self.note(condition, loops, conditions, epoch)
                passed = self.visit(then, loops, (*conditions, condition), epoch)
                assert otherwise is None
                return passed
            case Allocate():
                return self.visit(stmt.body, loops, conditions, epoch)
            case Store():
                self.note(stmt, loops, conditions, epoch)
                return 0
        raise AssertionError(stmt)

    def passed(self, stmt, loops):
        """Return how many barriers a thread passes in a statement."""
        other = Accesses.__new__(Accesses)
        other.found = []
        return other.visit(stmt, loops, (), index_const(0))

    def note(self, part, loops, conditions, epoch):
        for node in walk(part):
            if isinstance(node, Load | Store) and node.buffer.scope == "shared":
                self.found.append(Access(node, loops, conditions, epoch))


def conflict(a: Access, b: Access) -> bool:
    """Ask z3 whether two threads may access one element between the same barriers."""
    terms = Integers()
    solver = z3.Solver()
    first, second = (
        _instance(access, name, terms, solver) for access, name in ((a, "p"), (b, "q"))
    )
    outside, threads = [], []
    for tag in {loop.kind for loop in (*a.loops, *b.loops) if is_thread(loop.kind)}:
        here, there = (_of(tag, access, renamed, terms) for access, renamed in
                       ((a, first), (b, second)))  # fmt: skip
        (threads if is_in_block(tag) else outside).append((here, there))
    solver.add(*(here == there for here, there in outside))
    solver.add(z3.Or(*(here != there for here, there in threads)))
    one, other = (substitute(access.epoch, names) for access, names in ((a, first), (b, second)))
    solver.add(terms.term(one) == terms.term(other))
    for x, y in zip(a.node.indices, b.node.indices, strict=True):
        solver.add(terms.term(substitute(x, first)) == terms.term(substitute(y, second)))
    solver.add(*terms.definitions)
    result = solver.check()
    assert result != z3.unknown
    return result == z3.sat


def _instance(access, name, terms, solver):
    """Return fresh variables of an access' loops; add their ranges and the conditions."""
    names = {loop.var: Var(f"{name}.{loop.var.name}") for loop in access.loops}
    for loop in access.loops:
        value = terms.term(names[loop.var])
        solver.add(value >= 0, value < int(loop.extent.value))
    for condition in access.conditions:
        solver.add(terms.term(substitute(condition, names)))
    return names


def _of(tag, access, names, terms):
    """Return the number of a thread along an axis; the first, where no loop is bound to it."""
    loop = next((loop for loop in access.loops if loop.kind == tag), None)
    return z3.IntVal(0) if loop is None else terms.term(names[loop.var])


def has_conflict(func: PrimFunc) -> bool:
    found = Accesses(func).found
    return any(
        a.node.buffer is b.node.buffer
        and isinstance(a.node, Store) | isinstance(b.node, Store)
        and conflict(a, b)
        for n, a in enumerate(found)
        for b in found[n:]
    )


def is_racy(func: PrimFunc) -> bool:
    """Tell whether the simulator stops at a race, or at what was not written yet."""
    arrays = [np.ones(buffer.static_shape, buffer.dtype) for buffer in func.buffers]
    try:
        interpret(func, arrays)
    except ProgramError as error:
        return error.kind in ("race", "uninitialised")
    return False


def programs_of(func):
    """Yield a program, and it without each of its barriers."""
    yield func
    for lost in [node for node in walk(func.body) if isinstance(node, Barrier)]:
        body = rewrite(func.body, lambda node, lost=lost: Seq(()) if node is lost else node)
        yield func.with_body(body)


def reduction(n, m, threads):
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = create_schedule(B.op)
    _, ki = s[B].split(k, threads)
    io, _ = s[B].split(B.op.axis[0], 2)
    bound(s, B, (io, ki), ("blockIdx.x", "threadIdx.x"))
    return s, [A, B]


def tile(*sizes, **options):
    args = product(*sizes)
    return tiled(args, **options), args


def stages():
    A = te.placeholder((4, 6), name="A")
    k = te.reduce_axis((0, 6), name="k")
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((4, 6), lambda i, j: A[i, j] * B[i], name="C")
    s = create_schedule(C.op)
    i, j = s[C].op.axis
    io, _ = s[C].split(i, 2)
    bound(s, C, (io, j), ("blockIdx.x", "threadIdx.x"))
    s[B].compute_at(s[C], io)
    s[B].bind(s[B].op.axis[0], te.thread_axis("threadIdx.x"))
    return s, [A, C]


CASES = {
    "tiles": lambda: tile(5, 6, 4, threads=2, each=1, step=2),
    "tiles that do not fit": lambda: tile(3, 5, 3, threads=2, each=2, step=2),
    "one step": lambda: tile(4, 4, 2, threads=2, each=1, step=2),
    "a reduction": lambda: reduction(4, 10, 4),
    "a reduction over three threads": lambda: reduction(3, 7, 3),
    "stages of a block": stages,
}


@pytest.mark.parametrize("name", CASES)
def test_barriers_are_enough_and_each_that_z3_needs_is_needed(name):
    func = lower(*CASES[name](), simple_mode=True)
    assert not has_conflict(func)
    assert not is_racy(func)
    verdicts = [
        (has_conflict(program), is_racy(program), analyze_races(program).status)
        for program in programs_of(func)
    ]
    assert all(
        by_z3 == by_running and status == ("violated" if by_z3 else "safe")
        for by_z3, by_running, status in verdicts
    ), verdicts
