"""All that is cheap to recompute, inlined at once."""

import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.schedule.auto_inline import inline_broadcast, inline_elementwise, inline_injective


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
