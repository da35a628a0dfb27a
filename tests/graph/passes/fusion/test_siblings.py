"""Siblings in large and tangled graphs: which are found, and that values stay."""

import random

import numpy as np
import pytest

from dlcompiler.graph import evaluate, op, var
from dlcompiler.graph.ir import Call, Function, Module, Tuple
from dlcompiler.graph.passes import FusionOptions, fuse_ops
from tests.graph.passes.fusion.test_relay_cases import kernels
from tests.graph.passes.fusion.test_rows import fused
from tests.graph.random_graphs import flat
from tests.share import cases_of

SIBLINGS = FusionOptions(siblings=True)
X = var("x", (4, 3))


def test_readers_that_fit_into_no_group_are_refused_once():
    count = 400
    after = fused(Tuple(tuple(op.add(X, float(n), name=f"a{n}") for n in range(count))), SIBLINGS)
    # x and 15 sums are 16 values.
    sizes = [len(group) for group in kernels(after)]
    assert sizes == [15] * 26 + [10]
    log = [d for d in after.decisions() if len(d.subject) == 2]
    assert sum(d.rule == "siblings" for d in log) == count - len(sizes)
    refused = [d.subject for d in log if d.rule == "registers"]
    assert refused == [("a0", f"a{n}") for n in range(15, count)]


def test_a_group_is_made_where_its_first_kernel_is_needed():
    first = op.sqrt(X, name="first")
    y = op.sort(op.tanh(var("y", (4, 3)), name="before"), name="y")
    last = op.add(X, y, name="last")
    after = fused(Tuple((op.sort(first), last)), SIBLINGS)
    assert kernels(after) == [["tanh"], ["sort"], ["sqrt", "add"], ["sort"]]


def test_a_value_is_named_in_the_reason_also_if_a_group_computes_it():
    first = op.sqrt(X, name="first")
    out = (op.tanh(X, name="second"), op.sort(op.exp(first, name="a")), op.sort(op.abs(first)))
    after = fused(Tuple((first, *out)), SIBLINGS)
    assert {d.reason.split(" in ")[0] for d in after.decisions() if d.rule == "siblings"} == {
        "first and second read x", "a and abs_1 read first",
    }  # fmt: skip


def test_parts_of_splits_are_siblings():
    parts = [op.split(X, indices_or_sections=3, axis=1)[n] for n in (0, 2)]
    after = fused(Tuple(tuple(parts)), SIBLINGS)
    assert kernels(after) == [["split", "split"]]


# -- reductions ------------------------------------------------------------------------------------


def test_reductions_of_the_same_dimensions_are_siblings():
    mean = op.mean(X, axis=1, name="mean")
    square = op.mean(op.multiply(X, X), axis=[-1], keepdims=True, name="square")
    after = fused(Tuple((mean, square)), SIBLINGS)
    assert kernels(after) == [["mean", "multiply", "mean"]]
    (found,) = [d for d in after.decisions() if d.rule == "siblings"]
    assert found.subject == ("mean", "square")
    assert (found.effect.bytes, found.effect.kernels) == (48, 1)  # x is read once
    values = evaluate(after, np.arange(12, dtype="float32").reshape(4, 3))
    assert [value.shape for value in flat(values)] == [(4,), (4, 1)]


@pytest.mark.parametrize(
    ("out", "rule"),
    [
        ((op.sum(X, axis=0, name="a"), op.sum(X, axis=1, name="b")), "other loops"),
        ((op.abs(X, name="a"), op.sum(X, axis=1, name="b")), "other loops"),
        # The second one reads x again once it knows the maximum.
        ((op.max(X, axis=1, name="a"), op.logsumexp(X, axis=1, name="b")), None),
        # One needs the other.
        (((top := op.max(X, axis=1, keepdims=True, name="a")),
          op.sum(op.exp(op.subtract(X, op.sort(top))), axis=1, name="b")), None),
    ],
    ids=["axes", "elements", "two passes", "dependent"],
)  # fmt: skip
def test_reductions_that_are_no_siblings(out, rule):
    after = fused(Tuple(out), SIBLINGS)
    assert kernels(after) == kernels(fused(Tuple(out), FusionOptions()))
    assert [d.rule for d in after.decisions() if d.subject == ("a", "b")] == (
        [rule] if rule else []
    )


def test_each_reduction_has_an_accumulator_from_the_start():
    # The accumulators, x and its square.
    out = Tuple((op.sum(op.multiply(X, X), axis=1, name="a"), op.sum(X, axis=1, name="b")))
    for most, rule in ((3, "registers"), (4, "siblings")):
        after = fused(out, FusionOptions(siblings=True, max_live=most))
        assert [d.rule for d in after.decisions() if d.subject == ("a", "b")] == [rule]


def tangled(seed):
    """Return a module in which many values have many readers, which also read each other."""
    draw = random.Random(seed)
    inputs = [var("x", (4, 3)), var("y", (4, 3))]
    values = list(inputs)
    for _ in range(draw.randint(8, 40)):
        value, other = values[draw.randrange(len(values) // 2 + 1)], draw.choice(values)
        values.append(draw.choice([
            lambda v, o: op.tanh(v), lambda v, o: op.abs(v), lambda v, o: op.add(v, o),
            lambda v, o: op.sort(v), lambda v, o: op.multiply(op.negative(v), v),
            lambda v, o: op.cumsum(v, axis=0), lambda v, o: op.negative(v),
            lambda v, o: op.add(v, op.sum(o, axis=1, keepdims=True)),
            lambda v, o: op.add(v, op.max(o, axis=[1], keepdims=True)),
        ])(value, other))  # fmt: skip
    results = [v for v in values if isinstance(v, Call) and draw.random() < 0.4] or values[-1:]
    return Module.from_expr(Function(tuple(inputs), Tuple(tuple(results))))


@pytest.mark.parametrize("seed", cases_of(range(120)))
def test_tangled_graphs_compute_the_same(seed):
    draw, module = np.random.default_rng(seed), tangled(seed)
    inputs = [draw.integers(-3, 4, (4, 3)).astype("float32") for _ in range(2)]
    expected = flat(evaluate(module, *inputs))
    for most in (3, 16):
        after = fuse_ops(module, options=FusionOptions(siblings=True, max_live=most))
        for a, b in zip(flat(evaluate(after, *inputs)), expected, strict=True):
            assert np.array_equal(a, b, equal_nan=True), (seed, most)
