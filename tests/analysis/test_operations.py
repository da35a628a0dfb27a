"""How often stores are made: bounds on sums of loops, counted without trying all points."""

import itertools
import random
import time

import pytest

from dlcompiler import te
from dlcompiler.analysis.footprint import ProgramFootprint
from dlcompiler.analysis.operations import operations_of, solutions
from dlcompiler.analysis.references import Bound, Sum
from dlcompiler.ir import Var
from dlcompiler.pipeline import lower
from dlcompiler.pipeline.checks import default_args
from dlcompiler.schedule import create_schedule


@pytest.mark.parametrize("seed", range(20))
def test_solutions_are_those_that_trying_finds(seed):
    rng = random.Random(seed)
    for _ in range(20):
        extents = {Var(f"v{n}"): rng.randint(1, 7) for n in range(rng.randint(1, 4))}
        bounds = []
        for _ in range(rng.randint(1, 2)):
            factors = {var: rng.choice((-3, -1, 1, 2, 4, 7)) for var in extents}
            low = rng.randint(-15, 10)
            bounds.append(Bound(Sum(factors, 0), low, low + rng.randint(0, 20)))
        tried = sum(
            all(
                bound.low <= sum(f * point[n] for n, f in enumerate(bound.sum.factors.values()))
                <= bound.high
                for bound in bounds
            )
            for point in itertools.product(*map(range, extents.values()))
        )  # fmt: skip
        assert solutions(bounds, extents) == (tried, True)


def test_a_triangle_of_many_points_is_quick():
    i, j = Var("i"), Var("j")
    n = 300_000
    start = time.process_time()
    count, is_exact = solutions([Bound(Sum({i: 1, j: -1}, 0), 0, n)], {i: n, j: n})
    assert (count, is_exact) == (n * (n + 1) // 2, True)
    assert time.process_time() - start < 20  # there are 9e10 points


def test_a_product_in_tiles_that_do_not_divide_computes_no_more():
    A, B = te.placeholder((30, 50), name="A"), te.placeholder((50, 20), name="B")
    k = te.reduce_axis((0, 50), name="k")
    C = te.compute((30, 20), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = create_schedule(C.op)
    s[C].tile(*C.op.axis, 8, 16)
    s[C].split(k, factor=7)
    footprint = ProgramFootprint(lower(s, default_args(s), simple_mode=True))
    assert operations_of(footprint) == (2 * 30 * 50 * 20, True)
