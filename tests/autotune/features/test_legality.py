"""Points that a schedule refuses because of their numbers are known before it is made."""

import dataclasses

import numpy as np
import pytest

from dlcompiler import ops, te
from dlcompiler.autotune.features import SpaceFeatures
from dlcompiler.errors import ScheduleError
from dlcompiler.space import Knob, Space
from dlcompiler.target import resolve

TARGET = dataclasses.replace(resolve("x86-64-avx2"), cores=2)


def unrolling():
    """An operator that unrolls two loops of a tile, however large."""

    def define(workload):
        del workload
        A = te.placeholder((256, 256), name="A")
        return A, te.compute((256, 256), lambda i, j: A[i, j] + 1, name="B")

    def schedule(s, outs, cfg, target):
        del target
        (B,) = outs
        _, _, rows, columns = s[B].tile(*B.op.axis, 8, 8)
        _, row = s[B].split(rows, cfg["row"])
        _, column = s[B].split(columns, cfg["column"])
        s[B].unroll(row)
        s[B].unroll(column)

    def space(workload, target):
        del target
        return Space(workload, [Knob("row", (1, 4, 8)), Knob("column", (2, 8))])

    item = ops.operator("elementwise")
    way = dataclasses.replace(item.schedules["cpu"], apply=schedule, space=space)
    return dataclasses.replace(item, define=define, schedules=ops.by_device({"cpu": way}))


@pytest.fixture
def _few_copies(monkeypatch):
    for module in (
        "dlcompiler.schedule.legality.validity",
        "dlcompiler.autotune.features.legality",
    ):
        monkeypatch.setattr(f"{module}.MAX_COPIES", 16)


@pytest.mark.usefixtures("_few_copies")
def test_too_many_copies_are_known():
    operator = unrolling()
    workload = operator.workload(function="exp", shapes="256x256")
    space = operator.space(workload, TARGET)
    points = np.arange(space.size)
    legal = SpaceFeatures(operator, workload, TARGET, space).legal(points)
    assert 0 < legal.sum() < len(points)
    for point, is_legal in zip(points.tolist(), legal.tolist(), strict=True):
        if is_legal:
            operator.template(workload, TARGET, space.at(point))
        else:
            with pytest.raises(ScheduleError, match="would be repeated"):
                operator.template(workload, TARGET, space.at(point))


@pytest.mark.campaign
def test_what_filters_allow_of_shipped_templates_is_legal(named):
    name, parameters = named
    operator = ops.operator(name)
    workload = operator.workload(**parameters)
    space = operator.space(workload, TARGET)
    points = np.array(space.sample(25, 2))
    assert SpaceFeatures(operator, workload, TARGET, space).legal(points).all()
