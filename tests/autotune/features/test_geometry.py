"""Extents by evaluation are those of bound inference."""

import dataclasses

from dlcompiler import ops
from dlcompiler.autotune.features.geometry import Geometry
from dlcompiler.schedule.bounds import infer_bounds
from dlcompiler.target import resolve

TARGET = dataclasses.replace(resolve("x86-64-avx2"), cores=2)


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
