"""Works become workloads of operators; what no operator does is said."""

import pytest

from dlcompiler.bench.implementations import NotThere, implementation_of, target_of
from dlcompiler.bench.suites import TABLES, tables_of
from dlcompiler.bench.works import parse_work

SMALL = (
    "gemm:5x7x3",
    "conv2d:1x3x9x8,4,3,2,1",
    "conv2d:1x8x6x6,8,3,1,1+batch_norm+residual+relu",
    "depthwise:1x8x9x9,3,2,1",
    "depthwise:1x8x9x9,3,1,1+batch_norm+relu6",
    "pool2d:max:1x3x9x8,3,2,1",
    "pool2d:avg:1x3x9x8,3,1,1",
    "softmax:3x11",
    "log_softmax:3x11",
    "layer_norm:3x11",
    "elementwise:scale:64",
    "elementwise:add:64",
    "reduction:mean:3x11",
)


@pytest.mark.parametrize("text", SMALL)
def test_the_arrays_of_an_operator_are_those_of_the_work(text):
    work = parse_work(text)
    implementation = implementation_of(work, work.judged)
    reference = implementation.reference()
    given = {**reference.inputs, **reference.plain}
    shapes = {role: given[name].shape for role, name in implementation.roles.items()}
    (out,) = reference.expected.values()
    assert {**shapes, "out": out.shape} == work.shapes


@pytest.mark.parametrize("is_tuned", [True, False])
def test_all_works_of_the_tables_have_a_config(is_tuned):
    for table in (*TABLES, *tables_of("heldout", count=3)):
        for work in table.works.values():
            for row in work.rows:
                try:
                    implementation = implementation_of(work, row)
                except NotThere as reason:
                    assert str(reason)  # noqa: PT017  both are right
                    continue
                assert implementation.config(target_of(1), is_tuned=is_tuned).values
