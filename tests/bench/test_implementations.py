"""Works become workloads of operators; what no operator does is said."""

import pytest

from dlcompiler import ops
from dlcompiler.bench.implementations import NotThere, implementation_of, target_of
from dlcompiler.bench.suites import TABLES, tables_of
from dlcompiler.bench.works import GRAMMAR, parse_work
from dlcompiler.dtypes import from_numpy

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
    "gemm:5x7x3,dtype=int8,layout=NT+bias",
    "dense:5x7x3,dtype=bfloat16+bias+relu",
    "batch_matmul:2x3x4x5,layout=TN+residual",
    "conv2d:1x8x9x9,4,3x1,1,1x0,groups=2,layout=NHWC+bias+residual",
    "depthwise:1x8x9x9,3,1,1,multiplier=2,dilation=2",
    "depthwise:1x8x9x9,3,1,1,layout=NHWC,dtype=int8",
    "pool2d:avg:1x8x9x9,3,2,1,count_include_pad=0,layout=NHWC",
    "softmax:2x3x4,axis=1",
    "rms_norm:2x3x4",
    "batch_norm:2x3x4,axis=-1",
    "elementwise:less_equal:2x3,3,dtype=int8",
    "reduction:argmax:2x3x4,axes=1",
    "transpose:2x3x4,dtype=int8",
    "pad:2x3,0x1,1x0,mode=reflect",
    "concatenate:2x3,2x4,axis=1",
    "elementwise:where:2x1,2x3,3",
    "elementwise:clip:5,low=-1",
    "split:6x4,3",
    "embedding:10x4,2x3,index_dtype=int64",
    "one_hot:2x3,5",
    "resize2d:1x2x4x4,8x8,method=cubic,alpha=-0.5",
)


@pytest.mark.parametrize("text", SMALL)
def test_the_arrays_of_an_operator_are_those_of_the_work(text):
    work = parse_work(text)
    implementation = implementation_of(work, work.judged)
    reference = implementation.reference()
    given = {**reference.inputs, **reference.plain}
    shapes = {role: given[name].shape for role, name in implementation.roles.items()}
    out, *others = reference.expected.values()
    assert len(others) + 1 == work.results
    assert {**shapes, "out": out.shape} == work.shapes
    dtypes = {role: from_numpy(given[name].dtype) for role, name in implementation.roles.items()}
    assert {**dtypes, "out": work.dtypes["out"]} == work.dtypes


def test_every_operator_of_processors_is_reachable():
    reached = {family.operator for family in GRAMMAR.values()}
    of_processors = {name for name in ops.REGISTRY if "cpu" in ops.operator(name).schedules}
    of_conv2d = {name for name in of_processors if name.startswith("conv2d_")}
    assert reached == {*of_processors, "conv2d"} - of_conv2d


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
