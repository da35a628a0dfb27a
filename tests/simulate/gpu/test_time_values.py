"""Loads that remain in unrolled code, and the registers of their values, against enumeration."""

from __future__ import annotations

import itertools
import random

import pytest

from dlcompiler.ir import Buffer, Var
from dlcompiler.passes.merge_thread_loops import merge_thread_loops
from dlcompiler.pipeline import lower_program
from dlcompiler.simulate.gpu.forms import Form
from dlcompiler.simulate.gpu.resources import estimated
from dlcompiler.simulate.gpu.time_phases import Loop, Reach, Read
from dlcompiler.simulate.gpu.time_values import LONGEST_REORDERED, bodies_of, distinct_loads
from tests.thread_programs import tiled_matmul

DATA, SUM = Buffer("data", (64,), "float32"), Buffer("sum", (64,), "float32")


def reach(buffer, factors, loops, *, is_update=False, constant=0):
    """Return an access of 4 bytes whose address is a sum over the loops."""
    terms = {loop.var: 4 * factor for loop, factor in zip(loops, factors, strict=True) if factor}
    space = "local" if is_update else "shared"
    return Reach(buffer, is_update, space, Form(4 * constant, terms), 4, 1, tuple(loops), is_update)


def nest(extents, rolled=0):
    """Return loops, of which the first `rolled` ones are not unrolled."""
    return [Loop(Var(f"i{n}"), extent, n >= rolled, False, False)
            for n, extent in enumerate(extents)]  # fmt: skip


def enumerated(factors, extents):
    """Return distinct places, those used again, further uses, and the most live ones."""
    uses = {}
    for time, at in enumerate(itertools.product(*map(range, extents))):
        uses.setdefault(sum(f * i for f, i in zip(factors, at, strict=True)), []).append(time)
    again = [times for times in uses.values() if len(times) > 1]
    moments = range(len(list(itertools.product(*map(range, extents)))))
    live = max((sum(t[0] <= now < t[-1] for t in again) for now in moments), default=0)
    return len(uses), len(again), sum(len(t) - 1 for t in again), live


def test_loads_and_live_values_are_those_of_enumeration():
    generator = random.Random(3)
    for _ in range(40):
        extents = [generator.choice((1, 2, 3, 5)) for _ in range(3)]
        factors = [generator.choice((0, 1, 2, 4)) for _ in extents]
        loops = nest(extents)
        load = reach(DATA, factors, loops)
        update = reach(SUM, (0, 0, 1), loops, is_update=True)
        (body,) = bodies_of(Read([load, update]))
        places, kept, reuses, live = enumerated(factors, extents)
        assert (body.loads, body.kept, body.reuses, body.live) == (places, kept, reuses, live)
        assert distinct_loads([load]) == places / (extents[0] * extents[1] * extents[2])
        assert (body.executions, body.results) == (1, extents[2])


def test_a_loop_that_stays_repeats_its_loads():
    loops = nest((7, 4), rolled=1)
    (body,) = bodies_of(
        Read([reach(DATA, (0, 1), loops), reach(SUM, (0, 1), loops, is_update=True)])
    )
    assert (body.executions, body.loads, body.sums) == (7, 4, 4)
    assert distinct_loads([reach(DATA, (0, 1), loops)]) == 1


@pytest.mark.parametrize("is_guarded", [False, True])
@pytest.mark.parametrize("rows", [15, 40])
def test_only_long_code_with_guarded_results_keeps_its_order(is_guarded, rows):
    loops = nest((rows, 15, 8, 1))  # like a filter of 15 columns, 8 results two rows apart
    load = reach(DATA, (100, 1, 200, 0), loops)
    update = reach(SUM, (0, 0, 1, 0), loops, is_update=True)
    (body,) = bodies_of(Read([load, update], guarded={SUM} if is_guarded else set()))
    is_long = body.loads + body.sums > LONGEST_REORDERED
    assert is_long == (rows == 40)
    assert body.keeps_its_order == (is_long and is_guarded)


def test_code_that_keeps_its_order_spills_what_has_no_register(thread):
    loops = nest((40, 15, 8, 1))
    read = Read(
        [reach(DATA, (100, 1, 400, 0), loops), reach(SUM, (0, 0, 1, 0), loops, is_update=True)],
        guarded={SUM},
    )
    (body,) = bodies_of(read)
    plain, kept = estimated(thread), estimated(thread, [body])
    assert plain.spill_bytes == 0
    assert kept.registers == 255
    assert 0 < kept.spill_bytes <= 4 * body.kept


@pytest.fixture
def thread():
    (launch,) = lower_program(*tiled_matmul(), "gpu").launches
    return merge_thread_loops(launch)
