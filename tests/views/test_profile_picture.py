"""Where the time of a model goes: bars along a run, the slowest kernels, and the table."""

import numpy as np
import pytest

from dlcompiler import graph
from dlcompiler.display import model as view_model
from dlcompiler.graph import KernelTime, Profile, op, var
from dlcompiler.graph.execution.profiles import StepWork
from dlcompiler.runtime.timing import measured_here

NAMES = ("stem", "a_conv+a_relu", "a_norm", "b_one_conv", "b_one_norm", "b_two_conv", "head")


def profile(seconds=1e-3, names=NAMES, **more):
    work = StepWork(("nn.conv2d",), "conv2d_direct", 2_000_000, 8, 8, True)
    return Profile(KernelTime(n, n, seconds, measured_here(), work, **more) for n in names)


def bars(scene, role):
    return {
        mark["title"].split(":")[0]: (mark["x"], mark["w"])
        for mark in scene["marks"]
        if mark["shape"] == "rect" and mark["role"] == role and ":" in mark.get("title", "")
    }


def test_kernels_are_as_wide_as_they_take_long_below_what_their_names_share():
    scene = view_model("profile", profile())
    kernels, parts = bars(scene, "node"), bars(scene, "box")
    assert list(kernels) == list(NAMES)
    (width,) = {round(w) for _, w in kernels.values()}
    assert set(parts) == {"the model", "a", "b", "b.one"}
    assert parts["b"][0] == kernels["b_one_conv"][0]
    assert [round(parts[name][1] / width) for name in ("the model", "a", "b", "b.one")] == [
        7,
        2,
        3,
        2,
    ]
    assert all(
        mark["x"] >= 0 and mark["x"] + mark["w"] <= scene["width"]
        for mark in scene["marks"]
        if mark["shape"] == "rect"
    )


def test_the_least_time_is_a_part_of_the_bar():
    scene = view_model("profile", profile(bound="FMA peak", least_s=5e-4))
    full = [mark for mark in scene["marks"] if mark["role"] == "bar"]
    assert len(full) == len(NAMES)
    assert {mark["title"] for mark in full} == {"least time by the FMA peak: 500 µs"}
    assert scene["table"]["rows"][0][-1] == "50% (FMA peak)"
    above = view_model("profile", profile(bound="memory", least_s=2e-3))
    assert all(mark["x"] + mark["w"] <= scene["width"] for mark in above["marks"] if "w" in mark)


@pytest.mark.parametrize(
    "names", [(), ("x",), ("x", "x"), ("/" * 9, "++", "é" * 300), ("a.b.c",) * 400]
)
def test_names_of_every_kind(names):
    found = profile(names=names)
    assert "svg" in found.svg
    assert len(found.table.splitlines()) == 2 + len(names)


def test_a_model_gives_one_with_its_roofline():
    x = var("x", (64, 64))
    model = graph.build(graph.Module.from_expr(op.nn.softmax(op.exp(x))))
    data = np.zeros((64, 64), "f")
    found = model.profile(data, repeats=2, roofline=True)
    assert len(found) == len(model.steps)
    assert found.seconds == sum(each.seconds for each in found)
    assert "softmax" in found.table
    assert found._repr_html_().count("<svg") or "data:image/svg" in found._repr_html_()
    assert all(each.work.bytes > 0 for each in found)
    assert [each.to_json()["name"] for each in found] == [step.name for step in model.steps]
