"""All that is cheap to recompute, inlined at once."""

import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.ir import walk
from dlcompiler.schedule.auto_inline import (
    MOST_NODES,
    inline_broadcast,
    inline_elementwise,
    inline_injective,
)
from dlcompiler.schedule.inference.inlining import bodies


@pytest.fixture
def chain():
    A, R = te.placeholder((8, 8), name="A"), te.placeholder((8,), name="R")
    same = te.compute((8, 8), lambda i, j: A[i, j] * 2.0, name="same")
    row = te.compute((8, 8), lambda i, j: same[i, j] + R[j], name="row")
    turned = te.compute((8, 8), lambda i, j: row[j, i], name="turned")
    k = te.reduce_axis((1, 8), name="k")
    total = te.compute((8,), lambda i: te.sum(turned[i, k], axis=k), name="total")
    out = te.compute((8,), lambda i: total[i] + 1.0, name="out")
    return te.create_schedule(out.op), [A, R, out]


@pytest.mark.parametrize(
    ("inline", "expected"),
    [
        (inline_elementwise, ["same"]),
        (inline_broadcast, ["same", "row"]),
        (inline_injective, ["same", "row", "turned"]),
    ],
)
def test_each_inlines_its_kind(chain, inline, expected):
    s, args = chain
    inline(s)
    assert [stage.name for stage in s.state.stages if stage.is_inlined] == expected
    assert len(s.trace) == len(expected)
    assert dlc.verify(s, args).worst <= 1


def test_a_stage_that_was_scheduled_stays(chain):
    s, _ = chain
    stage = next(stage for stage in s.stages if stage.name == "row")
    stage.split(stage.leaf_iter_vars[0], factor=4)
    inline_injective(s)
    assert not s.state.stage("row").is_inlined


def test_what_a_scan_begins_with_stays():
    n = 5
    X = te.placeholder((n, 3), name="X")
    first = te.compute((1, 3), lambda _, j: X[0, j] * 2.0, name="first")
    state = te.placeholder((n, 3), name="state")
    step = te.compute((n, 3), lambda t, j: state[t - 1, j] + X[t, j], name="step")
    running = te.scan(first, step, state, inputs=[X])
    s = te.create_schedule(running.op)
    inline_injective(s)
    assert not s.state.stage("first").is_inlined
    assert dlc.verify(s, [X, running]).worst <= 1


def _chain(step, length):
    """Return the schedule of a chain of stages, its arguments, and its expressions' sizes."""
    A = te.placeholder((4, 32), name="A")
    y = A
    for _ in range(length):
        y = step(y)
    s = te.create_schedule(y.op)
    inline_injective(s)
    sizes = [sum(1 for _ in walk(body)) for parts in bodies(s.state).values() for body in parts]
    return s, [A, y], sizes


def _squared(y):
    def element(i, j):
        value = y[i, j] * 0.5
        return value * value

    return te.compute((4, 32), element)


def _residual(y):
    relu = te.compute((4, 32), lambda i, j: te.maximum(y[i, j], 0.0))
    return te.compute((4, 32), lambda i, j: y[i, j] + relu[i, j] * -0.5)


@pytest.mark.parametrize(
    "step",
    [
        lambda y: te.compute((4, 32), lambda i, j: y[i, j] + y[i, j]),
        lambda y: te.compute((4, 32), lambda i, j: y[(i + 1) % 4, j] * y[(i + 1) % 4, j]),
        lambda y: te.compute((4, 32), lambda i, j: y[i, j] * te.sigmoid(y[i, j])),
        _squared,
        _residual,
    ],
    ids=["sum", "moved", "swish", "squared", "residual"],
)
def test_stages_that_read_an_element_twice_compute_it_once(step):
    s, args, sizes = _chain(step, 20)
    assert len(sizes) == 1
    one, two = (sum(_chain(step, n)[2]) for n in (5, 10))
    assert sum(sizes) - two == 2 * (two - one)
    assert dlc.verify(s, args).worst <= 1


def test_stages_that_read_several_elements_are_not_copied_without_bound():
    def turned(y):
        return te.compute((4, 32), lambda i, j: (y[i, j] + y[3 - i, j]) * 0.5)

    s, args, sizes = _chain(turned, 20)
    assert max(sizes) <= MOST_NODES
    assert sum(sizes) <= 20 * MOST_NODES / 4
    assert dlc.verify(s, args).worst <= 1
