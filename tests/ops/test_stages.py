"""Steps that several schedules share."""

from dlcompiler import ops, te
from dlcompiler.ops.stages import stages_by_role, unroll
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule


def test_stages_are_found_by_the_last_part_of_their_name():
    operator = ops.operator("pool2d")
    args = operator.define(operator.workload(kind="max", c=2, h=5, w=5, kernel=3))
    stages = stages_by_role(create_schedule(args[-1].op))
    assert {"padded", "sums"} <= stages.keys()
    assert stages["padded"].name.endswith(".padded")


def test_loops_of_several_stages_are_unrolled():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((4,), lambda i: B[i] * 2.0, name="C")
    s = create_schedule(C.op)
    unroll(s, [(B, B.op.axis[0]), (C, C.op.axis[0])])
    assert str(lower(s, [A, C], simple_mode=True)).count("unrolled(4)") == 2
