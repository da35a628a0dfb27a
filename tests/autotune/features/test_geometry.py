"""Extents by evaluation are those of bound inference."""

import dataclasses

import pytest

from dlcompiler import ops, te
from dlcompiler.autotune.features.geometry import Geometry
from dlcompiler.errors import TuningError
from dlcompiler.ir import call_packed
from dlcompiler.schedule import create_schedule
from dlcompiler.schedule.inference.bounds import infer_bounds
from dlcompiler.target import resolve

TARGET = dataclasses.replace(resolve("x86-64-avx2"), cores=2)


@pytest.mark.campaign
def test_extents_are_those_of_bound_inference(named):
    name, parameters = named
    operator = ops.operator(name)
    workload = operator.workload(**parameters)
    space = operator.space(workload, TARGET)
    for point in space.sample(12, 3):
        s, _ = operator.template(workload, TARGET, space.at(point))
        geometry = Geometry(s.state)
        for stage, bounds in infer_bounds(s.state).stages.items():
            own = geometry.stages[stage]
            paths = own.stage.paths
            found = {paths[axis]: extent for axis, extent in own.extents.items()}
            expected = {paths[axis]: extent for axis, extent in bounds.extents.items()}
            assert found == expected, (space.at(point), stage)


@pytest.mark.parametrize("size", [3, 16, 40])
def test_extents_of_threads_are_those_of_bound_inference(size):
    A = te.placeholder((size, size), name="A")
    P = te.compute((size, size), lambda i, j: A[i, j] * 2.0, name="P")
    C = te.compute((size, size), lambda i, j: P[i, j] + 1.0, name="C")
    s = create_schedule(C.op)
    io, jo, ii, ji = s[C].tile(*C.op.axis, 32, 8)
    fused = s[C].fuse(ii, ji)
    for loop, tag in ((io, "blockIdx.y"), (jo, "blockIdx.x"), (fused, "threadIdx.x")):
        s[C].bind(loop, te.thread_axis(tag))
    s[P].compute_at(s[C], jo)
    s[P].set_scope("shared")
    loop, _ = s[P].split(s[P].fuse(*P.op.axis), nparts=256)
    s[P].bind(loop, te.thread_axis("threadIdx.x"))
    geometry = Geometry(s.state)
    for stage, bounds in infer_bounds(s.state).stages.items():
        assert dict(geometry.stages[stage].extents) == dict(bounds.extents)


def test_code_from_outside_has_no_features():
    A = te.placeholder((8,), name="A")
    E = te.extern((8, 8), [A], lambda i, o: call_packed("test.views", *i, *o), name="E")
    with pytest.raises(TuningError) as caught:
        Geometry(create_schedule(E.op).state)
    assert str(caught.value) == (
        "features of a schedule: code from outside has none yet\n"
        "  got       E\n"
        '  hint      tune without a cost model: tuner="random"'
    )
