"""The roofline of programs on an accelerator: their places, the roof, and the table."""

import math
from dataclasses import replace

import pytest

from dlcompiler.errors import UserError
from dlcompiler.pipeline.rooflines import AcceleratorRoofline, RooflinePoint, roofline_of
from dlcompiler.simulate.accelerators.demand import NOTHING
from dlcompiler.target.accelerators.vta import preset
from dlcompiler.views.device.accelerator_roofline import roofline_scene
from tests.accelerator_programs import product

HOSTILE = "</title><script>alert(1)</script>"
VTA = preset("vta-pynq")


@pytest.fixture(scope="module")
def pair():
    return product(), product(virtual_threads=1)


def cells(scene, number=0):
    return dict(zip(scene["table"]["columns"], scene["table"]["rows"][number], strict=True))


def dots(scene):
    return [m for m in scene["marks"] if m["shape"] == "dots" and "title" in m]


def point(operations, size, cycles, name="a", series=""):
    demand = replace(NOTHING, operations=operations, instruction_bytes=size)
    return RooflinePoint(name, demand, cycles, series)


def test_a_program_is_at_its_intensity_and_its_rate(pair):
    scene = roofline_scene(pair[0].roofline())
    row, report = cells(scene), pair[0].report()
    assert row["operations"] == 2 * 256 * 256
    assert row["bytes moved"] == report.demand.bytes
    assert row["cycles (simulated)"] == report.cycles
    rate = report.demand.operations / report.cycles
    bound = 8 * report.demand.intensity
    assert row["limited by"] == "bandwidth"
    assert row["of the bound"] == f"{rate / bound:.0%}"
    assert row["of the peak"] == f"{rate / 512:.0%}"


def test_no_program_is_above_the_roof(pair):
    roofline = pair[0].roofline(pair[1], names=("gemv", "gemv"), series=("two threads", "plain"))
    for each in roofline.points:
        assert each.rate <= roofline.bound(each)


def test_places_and_roofs_are_logarithmic():
    programs = [point(512 * 1000, 1000 * n, 1000 * n) for n in (1, 10, 100)]
    scene = roofline_scene(AcceleratorRoofline(VTA, tuple(programs)))
    (x1, y1), (x2, y2), (x3, y3) = (mark["xy"] for mark in dots(scene))
    assert x1 - x2 == pytest.approx(x2 - x3, abs=0.2)
    assert y2 - y1 == pytest.approx(y3 - y2, abs=0.2)
    flat, slope = (m for m in scene["marks"] if m["role"] == "curve")
    assert flat["y"] == flat["y2"] == y1  # the first one reaches the peak
    assert (slope["x2"], slope["y2"]) == (flat["x"], flat["y"])


def test_one_work_in_two_series_is_joined(pair):
    def joins(**words):
        scene = roofline_scene(pair[0].roofline(pair[1], **words))
        return [m for m in scene["marks"] if m["shape"] == "line" and m["y"] != m["y2"]
                and m["role"] == "axis" and m["x2"] - m["x"] != 0]  # fmt: skip

    assert len(joins(names=("gemv", "gemv"), series=("two threads", "plain"))) == 1
    assert not joins(names=("a", "b"), series=("two threads", "plain"))
    assert not joins(names=("gemv", "gemv"))


def test_the_summary_has_the_mean_of_each_series():
    programs = [point(1000, 1000, 1000, "a", "x"), point(1000, 1000, 500, "b", "x")]
    found = AcceleratorRoofline(VTA, tuple(programs))
    mean = math.sqrt(1 / 8 * 2 / 8)
    summary = roofline_scene(found)["summary"]
    assert f"x: {mean:.0%} of the roof in geometric mean" in summary
    assert summary.startswith("2 programs on vta-pynq, simulated: ")


def test_a_program_without_tensor_instructions_is_in_the_table_only():
    scene = roofline_scene(AcceleratorRoofline(VTA, (point(0, 100, 10),)))
    assert not dots(scene)
    assert "no program executes a tensor instruction" in scene["summary"]
    assert cells(scene)["of the peak"] == "0%"


def test_hostile_names_are_text(pair, parsed):
    roofline = pair[0].roofline(names=(HOSTILE,), series=(HOSTILE,))
    parsed(roofline._repr_html_())
    assert "<script" not in roofline.svg
    assert "alert(1)" in roofline.table


def test_machines_with_other_roofs_are_refused(pair):
    other = preset("vta-ultra96")
    points = [(VTA, point(1, 1, 1)), (other, point(1, 1, 1))]
    with pytest.raises(UserError, match="machines with other roofs") as caught:
        roofline_of(points)
    assert "vta-ultra96: 512 operations and 16 bytes a cycle" in str(caught.value)
    with pytest.raises(UserError, match="each program needs a name"):
        pair[0].roofline(names=("a", "b"))
    with pytest.raises(UserError, match="each program needs a series"):
        pair[0].roofline(series=("a", "b"))
    with pytest.raises(UserError, match="there is no program"):
        roofline_of([])
