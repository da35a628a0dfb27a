"""The timeline of an accelerator's engines: its lanes, blocks, tokens, waits and table."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

from dlcompiler.errors import UserError
from dlcompiler.pipeline.timelines import Timeline, timeline_of
from dlcompiler.simulate.accelerators.timing.run import time_program
from dlcompiler.simulate.accelerators.timing.waits import tokens_of, waits_of
from dlcompiler.views.device.timeline import MOST_TOKENS, timeline_scene
from dlcompiler.views.device.timeline_lanes import PASSING, bars_of, model_of, table_of
from tests.accelerator_programs import product, repeated

HOSTILE = "</title><script>alert(1)</script>"


@pytest.fixture(scope="module")
def kernel():
    return product()


@pytest.fixture(scope="module")
def large():
    """10,000 instructions that come from no schedule."""
    return Timeline(("large",), ((time_program(repeated(10_000)),),))


def bars(scene):
    return [m for m in scene["marks"] if m["shape"] == "rect" and "title" in m]


def arrows(scene):
    return [m for m in scene["marks"] if m["shape"] == "path"]


def test_each_engine_is_a_lane_and_each_instruction_is_in_a_bar(kernel):
    timeline = kernel.timeline()
    scene = timeline_scene(timeline)
    words = [m["text"] for m in scene["marks"] if m["shape"] == "text"]
    assert [engine for engine in ("load", "compute", "store") if engine in words] == [
        "load", "compute", "store",
    ]  # fmt: skip
    model = model_of(timeline)
    assert model.count == len(kernel.instructions.steps)
    for lane in model.rows[0].lanes:
        found = bars_of(lane, 100.0, len(model.groups))
        assert found.count.sum() == len(lane.step)
        assert found.busy.sum() == (lane.end - lane.start).sum()


def test_bars_have_the_keys_of_their_stage_and_say_what_they_wait_for(kernel):
    scene = timeline_scene(kernel.timeline().between(1000, 3000))
    keys = {mark["keys"][0] for mark in bars(scene)}
    assert keys == {"acc", "A.inp", "W.wgt"}
    assert ["acc", "acc/bi", "acc/ci", "acc/ki"] in [mark["keys"] for mark in bars(scene)]
    said = [m["title"] for m in bars(scene) if ": gemm " in m["title"]]
    assert "for a token load->compute of instruction" in said[-1]
    assert all("\ncycles " in text and "\nacc[" in text for text in said)
    assert any(m.get("text") == "for load" for m in scene["marks"])


def test_cycles_are_labelled_as_simulated_in_their_profile(kernel):
    scene = timeline_scene(kernel.timeline())
    assert any(m.get("text") == "cycles (simulated, profile B)" for m in scene["marks"])
    assert scene["summary"].endswith("(simulated, profile B).")


def test_a_machine_that_was_not_measured_is_extrapolated(kernel):
    machine = kernel.instructions.accelerator
    wide = machine.with_(port=replace(machine.port, bytes_per_cycle=16))
    run = time_program(replace(kernel.instructions, accelerator=wide))
    summary = timeline_scene(Timeline(("wide",), ((run,),)))["summary"]
    assert "extrapolated: a bus of 16 bytes (measured: 8)" in summary


def test_arrows_are_the_tokens_and_those_that_were_waited_for_are_solid(kernel):
    scene = timeline_scene(kernel.timeline())
    tokens = tokens_of(kernel.instructions)
    assert len(arrows(scene)) == len(tokens)
    run = kernel.report().runs[0]
    awaited = np.count_nonzero(run.reason >= 0)
    assert sum(not arrow["dash"] for arrow in arrows(scene)) == awaited > 0
    for token in tokens:
        assert run.end[token.pushed_by] < run.start[token.popped_by]


def test_the_table_adds_up_to_the_cycles(kernel):
    timeline = kernel.timeline()
    table = table_of(model_of(timeline))
    run = kernel.report().runs[0]
    for row in table["rows"]:
        cells = dict(zip(table["columns"], row, strict=True))
        engine = cells["engine"]
        assert cells["busy [cycles]"] == run.busy[engine]
        assert cells["instructions"] == len(run.of(engine))
        waits = waits_of(run)[engine]
        assert cells["waits for fetch [cycles]"] == waits.get("fetch", 0)
        idle = sum(n for head, n in cells.items() if head.startswith("waits for"))
        assert idle == sum(waits.values())
        last = run.of(engine)[-1]
        # Each handover takes a cycle; nothing else is left.
        assert idle + run.busy[engine] + cells["instructions"] == run.end[last]


def test_two_windows_have_the_busy_cycles_of_both(kernel):
    def busy(first, last):
        rows = table_of(model_of(kernel.timeline().between(first, last)))["rows"]
        return np.array([row[3] for row in rows])

    whole = busy(0, kernel.report().cycles)
    assert (busy(0, 4000) + busy(4000, kernel.report().cycles) == whole).all()
    assert timeline_scene(kernel.timeline().between(1200, 4000))["summary"].endswith(
        "Shown: cycles 1,200 to 4,000."
    )


def test_many_instructions_are_merged_so_that_the_picture_stays_small(large):
    scene = timeline_scene(large)
    assert len(scene["marks"]) < 500
    assert len(large._repr_html_()) < 120_000
    assert not arrows(scene)
    merged = [mark["title"] for mark in bars(scene) if "instructions, mostly gemm" in mark["title"]]
    assert sum(int(title.split()[0].replace(",", "")) for title in merged) > 3_000
    row = next(r for r in table_of(model_of(large))["rows"] if r[1] == "compute")
    assert row[2] > 3_300


def test_a_window_of_many_instructions_shows_each_one(large):
    scene = timeline_scene(large.between(50_000, 51_000))
    assert all(": " in mark["title"] for mark in bars(scene))
    assert 0 < len(arrows(scene)) <= MOST_TOKENS


def test_instructions_without_a_statement_are_grouped_by_what_they_do(large):
    model = model_of(large)
    assert model.groups == ("load uop", "load inp", "gemm", "store", PASSING, "finish")
    assert not model.stages
    assert all(mark["keys"] == [] for mark in bars(timeline_scene(large)))


def test_two_programs_stand_above_each_other_on_one_axis(kernel):
    plain = product(virtual_threads=1)
    timeline = kernel.timeline(plain, names=("virtual threads", "plain"))
    assert timeline.cycles == max(kernel.report().cycles, plain.report().cycles)
    scene = timeline_scene(timeline)
    said = [m["text"] for m in scene["marks"] if m["role"] == "name"]
    assert said == [f"virtual threads: {kernel.report().cycles:,} cycles",
                    f"plain: {plain.report().cycles:,} cycles"]  # fmt: skip
    assert [row[0] for row in scene["table"]["rows"]] == ["virtual threads"] * 3 + ["plain"] * 3
    assert kernel.timeline(kernel).names == ("gemv, 1", "gemv, 2")


def test_parts_follow_one_another(kernel):
    run = kernel.report().runs[0]
    model = model_of(Timeline(("twice",), ((run, run),)))
    assert model.rows[0].cycles == 2 * run.cycles
    lane = model.rows[0].lanes[0]
    assert (lane.start[len(lane.start) // 2 :] == run.start[run.of("load")] + run.cycles).all()


def test_hostile_names_are_text(kernel, parsed):
    timeline = kernel.timeline(kernel, names=(HOSTILE, "b"))
    parsed(timeline._repr_html_())
    root = ET.fromstring(timeline.svg)
    assert not [e for e in root.iter() if e.tag.endswith("script")]
    assert any(HOSTILE[:20] in (e.text or "") for e in root.iter())
    assert HOSTILE in timeline.table


def test_marks_stay_inside_the_picture(kernel, large):
    for timeline in (kernel.timeline(), large, kernel.timeline(kernel)):
        scene = timeline_scene(timeline)
        for mark in scene["marks"]:
            if mark["shape"] == "path":
                continue
            assert 0 <= mark["x"] <= scene["width"] - mark.get("w", 0)
            assert 0 <= mark["y"] <= scene["height"] - mark.get("h", 0)


def test_what_cannot_be_shown_is_refused(kernel):
    with pytest.raises(UserError, match="the cycles are not in order"):
        kernel.timeline().between(10, 10)
    with pytest.raises(UserError, match="the cycles are not in order"):
        kernel.timeline().between(0.5, 10)
    with pytest.raises(UserError, match="each program needs a name"):
        timeline_of([("a", ())], ("a", "b"))
    with pytest.raises(UserError, match="the program has ended before"):
        kernel.timeline().between(10**9, 10**9 + 1)
    whole = model_of(kernel.timeline())
    assert model_of(kernel.timeline().between(100, 10**9)).last == whole.last


def test_three_programs_fit_a_notebook(kernel):
    three = kernel.timeline().names * 3, kernel.timeline().runs * 3
    assert model_of(Timeline(*three)).count > 100
    assert len(Timeline(*three)._repr_html_()) < 60_000
