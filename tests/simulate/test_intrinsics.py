"""Programs with intrinsics that are wrong: found by the interpreter and by the analyses."""

from dataclasses import replace

import numpy as np
import pytest

from dlcompiler.analysis import analyze_races
from dlcompiler.analysis.accesses import collect_accesses
from dlcompiler.analysis.initialisation import initialisation_of
from dlcompiler.errors import ProgramError
from dlcompiler.ir import For, IntrinsicCall, Seq, Store, index_const, rewrite, walk
from dlcompiler.pipeline import lower
from dlcompiler.simulate import interpret
from tests.intrinsics import row_sum_schedule, row_sums, tiled


@pytest.fixture
def program():
    s, args, k = tiled(12, 32, 16, (6, 16, 8))
    s[args[-1]].tensorize(k, "gemm_f32_6x16x8")
    return lower(s, args, simple_mode=True)


def run(func):
    a, b = np.ones((12, 16), "float32"), np.ones((16, 32), "float32")
    c = np.full((12, 32), np.nan, "float32")
    report = interpret(func, [a, b, c])
    return c, report


def changed(func, rule):
    return func.with_body(rewrite(func.body, rule))


def test_what_is_declared_is_what_runs(program):
    c, report = run(program)
    assert (c == 16).all()
    assert report.stores == 12 * 32 * (1 + 16)
    assert report.unwritten == 0


def test_without_a_reset_it_reads_what_nothing_wrote(program):
    def rule(node):
        return Seq(()) if isinstance(node, IntrinsicCall) and node.mode == "reset" else node

    wrong = changed(program, rule)
    with pytest.raises(ProgramError) as error:
        run(wrong)
    assert error.value.kind == "uninitialised"
    assert initialisation_of(collect_accesses(wrong)).violations


def test_parallel_iterations_that_write_the_same_tile(program):
    def rule(node):
        if isinstance(node, For) and node.var.name == "k.outer":
            return replace(node, kind="parallel")
        return node

    wrong = changed(program, rule)
    with pytest.raises(ProgramError) as error:
        run(wrong)
    assert error.value.kind == "race"
    assert analyze_races(wrong).violations


def test_parallel_iterations_that_write_tiles_of_their_own():
    s, args, k = tiled(12, 32, 16, (6, 16, 8))
    C = args[-1]
    s[C].parallel(s[C].leaf_iter_vars[0])
    s[C].tensorize(k, "gemm_f32_6x16x8")
    func = lower(s, args)
    report = analyze_races(func)
    assert report.verdicts
    assert not (report.violations)
    assert not (report.unknowns)


def test_a_tile_that_is_out_of_bounds(program):
    def rule(node):
        if isinstance(node, For) and node.var.name == "j.outer":
            return replace(node, extent=index_const(3))
        return node

    with pytest.raises(ProgramError) as error:
        run(changed(program, rule))
    assert error.value.kind == "out_of_bounds"


def test_accesses_are_those_of_the_regions():
    s, args, leaves = row_sum_schedule(8, 12)
    s[args[-1]].tensorize(leaves[2], row_sums())
    func = lower(s, args, simple_mode=True)
    accesses = collect_accesses(func, with_inputs=True).items
    assert {(a.buffer.name, a.is_write) for a in accesses} == {
        ("A", False), ("C", False), ("C", True),
    }  # fmt: skip
    assert all(isinstance(a.statement, Store) for a in accesses)
    assert len([n for n in walk(func.body) if isinstance(n, IntrinsicCall)]) == 2
