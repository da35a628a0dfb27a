"""Random products, tiled at random, with a random intrinsic that fits: all results are right.

Seeds are printed by the names of the tests.
"""

import random

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import IntrinsicCall, walk
from dlcompiler.pipeline import build, lower
from dlcompiler.schedule import create_schedule, open_obligations
from dlcompiler.simulate import interpret

SIZES = (1, 2, 3, 4, 6, 7, 8, 12)


def random_product(rng):
    """Return tensors of a product with more dimensions, shifts and operands in any order."""
    m, n, k, b = (rng.choice(SIZES) for _ in range(4))
    dm, dk = rng.choice((0, 1, 3)), rng.choice((0, 2))
    batched, transposed = rng.random() < 0.4, rng.random() < 0.2
    A = te.placeholder((b, m + dm, k + dk) if batched else (m + dm, k + dk), name="A")
    B = te.placeholder((n, k + dk) if transposed else (k + dk, n), name="B")
    r = te.reduce_axis((dk, k + dk) if rng.random() < 0.5 else (0, k), name="k")

    def element(*axes):
        *batch, i, j = axes
        a = A[(*batch, i + dm, r)]
        w = B[j, r] if transposed else B[r, j]
        return te.sum(w * a if rng.random() < 0.5 else a * w, axis=r)

    C = te.compute((b, m, n) if batched else (m, n), element, name="C")
    if rng.random() < 0.4:
        D = te.compute(C.shape, lambda *axes: C[axes] + 1.0, name="D")
        return [A, B, D], C
    return [A, B, C], C


def random_steps(rng, s, C):
    """Split and reorder loops, keep inputs near, and compute the product inside its reader."""
    if rng.random() < 0.5:
        s.cache_read(s[C].op.input_tensors[rng.randrange(2)], "local", [C])
    for leaf in s[C].leaf_iter_vars:
        if rng.random() < 0.7:
            s[C].split(leaf, factor=rng.choice((1, 2, 3, 4, 8)))
    leaves = list(s[C].leaf_iter_vars)
    rng.shuffle(leaves)
    s[C].reorder(*leaves)
    D = s.outputs[0]
    if D is not C:
        outer = s[D].leaf_iter_vars[rng.randrange(len(s[D].leaf_iter_vars))]
        if rng.random() < 0.6 and s.can("compute_at", s[C], s[D], outer):
            s[C].compute_at(s[D], outer)
    for stage in s.stages:
        if stage.name.endswith(".local"):
            place = rng.choice(s[C].leaf_iter_vars)
            if s.can("compute_at", stage, s[C], place):
                stage.compute_at(s[C], place)


def later_steps(rng, s, C):
    """Try steps on a stage that has an intrinsic; some are refused."""
    for _ in range(4):
        name = rng.choice(("parallel", "unroll", "split", "vectorize", "reorder"))
        leaf = rng.choice(s[C].leaf_iter_vars)
        args = {"split": (leaf, 2), "reorder": rng.sample(s[C].leaf_iter_vars, 2)}
        try:
            getattr(s[C], name)(*args.get(name, (leaf,)))
        except (ScheduleError, ValueError):
            continue


def tensorized(rng, s, C):
    moves = [m for m in s.legal_moves(C) if m.primitive == "tensorize"]
    if not moves:
        return False
    move = rng.choice(moves)
    s.apply("tensorize", move.stage, move.args)
    return True


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(0, 160, 40))
def test_random_products(first):
    tried = 0
    for seed in range(first, first + 40):
        rng = random.Random(seed)
        args, C = random_product(rng)
        s = create_schedule(args[-1].op)
        random_steps(rng, s, C)
        if open_obligations(s.state) or not tensorized(rng, s, C):
            continue
        later_steps(rng, s, C)
        tried += 1
        func = lower(s, args, simple_mode=True)
        assert any(isinstance(node, IntrinsicCall) for node in walk(func.body)), seed
        check(s, args, func, seed)
    assert tried


def check(s, args, func, seed):
    generator = np.random.default_rng(seed)
    arrays = [generator.integers(-4, 5, t.static_shape).astype("float32") for t in args[:-1]]
    expected = te.evaluate(args[-1], dict(zip(args, arrays, strict=False)))
    for run in (lambda out: interpret(func, [*arrays, out]),
                lambda out: build(s, args)(*arrays, out)):  # fmt: skip
        out = np.full(args[-1].static_shape, np.nan, "float32")
        run(out)
        np.testing.assert_array_equal(out, expected, err_msg=f"seed {seed}\n{func}")
