"""The map of an accelerator's memories: values, their lifetimes, and how they are drawn."""

from dataclasses import replace

import numpy as np
import pytest

from dlcompiler.errors import UserError
from dlcompiler.pipeline.memory_maps import MemoryMap
from dlcompiler.simulate.accelerators.accesses import accesses_of
from dlcompiler.simulate.accelerators.timing.run import time_program
from dlcompiler.views.device import memory_values
from dlcompiler.views.device.accelerator_memories import MOST_DRAWN, memories_scene
from dlcompiler.views.device.memory_values import alive_over_time, memories_of
from tests.accelerator_programs import product, repeated

HOSTILE = "</title><script>alert(1)</script>"


@pytest.fixture(scope="module")
def kernel():
    return product()


@pytest.fixture(scope="module")
def plain():
    return product(virtual_threads=1)


def boxes(scene):
    return [m for m in scene["marks"] if m["shape"] == "rect" and "title" in m]


def rows(scene):
    return [dict(zip(scene["table"]["columns"], row, strict=True))
            for row in scene["table"]["rows"]]  # fmt: skip


def overlap(a, b):
    return a.start < b.last_use and b.start < a.last_use


def test_each_value_is_written_before_it_is_used_and_places_are_not_shared(kernel):
    model = memories_of(kernel.memories())
    assert {value.memory for value in model.values} == {"uop", "wgt", "inp", "acc", "out"}
    for value in model.values:
        assert value.start < value.written <= value.first_use < value.last_use
        for other in model.of(value.memory):
            if other is not value and overlap(value, other):
                assert value.high <= other.low or other.high <= value.low


def followed(run):
    """Return the values of a run, (memory, low, high, step, first and last use, uses) of each.

    It follows one instruction after another.
    """
    owner, made = {}, []
    found = list(accesses_of(run.program))
    for step in np.argsort(run.start, kind="stable").tolist():
        for access in sorted(found[step], key=lambda each: each.how == "write"):
            some = access.elements
            elements = range(some.start, some.stop) if isinstance(some, slice) else some.tolist()
            keys = [(access.memory, element) for element in elements]
            if access.how == "write":
                owner |= dict.fromkeys(keys, len(made))
                made.append([access.memory, keys[0][1], keys[-1][1] + 1, step, -1, -1, 0])
                continue
            for number in {owner[key] for key in keys if key in owner}:
                value = made[number]
                value[4] = int(run.start[step]) if value[4] < 0 else value[4]
                value[5], value[6] = max(value[5], int(run.end[step])), value[6] + 1
    return made


@pytest.mark.parametrize("most", [memory_values._MOST_PAIRS, 40])
def test_values_are_those_of_instructions_one_after_another(kernel, plain, monkeypatch, most):
    monkeypatch.setattr(memory_values, "_MOST_PAIRS", most)
    memory_values._values_of.cache_clear()
    runs = [*kernel.memories().runs, *plain.memories().runs, time_program(repeated(60, "A"))]
    for run in runs:
        values = memories_of(MemoryMap("p", (run,))).values
        own = [[v.memory, v.low, v.high, v.step, v.first_use, v.last_use, v.uses] for v in values]
        assert own == [value for value in followed(run) if value[-1]]


def test_virtual_threads_have_two_buffers_of_weights(kernel, plain):
    def buffers(each):
        return {(value.low, value.high) for value in memories_of(each.memories()).of("wgt")}

    assert buffers(kernel) == {(0, 16), (16, 32)}
    assert buffers(plain) == {(0, 16)}
    weights = memories_of(kernel.memories()).of("wgt")
    # While one is used, the other one is written.
    assert any(a.first_use < b.written and b.start < a.last_use
               for a in weights for b in weights if a.low != b.low)  # fmt: skip


def test_values_have_the_stage_that_wrote_them(kernel):
    model = memories_of(kernel.memories())
    stages = {value.memory: model.groups[value.group] for value in model.values}
    assert stages == {"uop": stages["uop"], "wgt": "W.wgt", "inp": "A.inp", "acc": "acc",
                      "out": "shifted"}  # fmt: skip
    keys = {key for box in boxes(memories_scene(kernel.memories())) for key in box["keys"]}
    assert {"W.wgt", "A.inp", "acc", "shifted"} <= keys


def test_the_table_has_the_most_elements_at_once(kernel):
    table = {row["memory"]: row for row in rows(memories_scene(kernel.memories()))}
    assert table["wgt"]["most alive at once"] == 32
    assert table["wgt"]["of the memory"] == "3%"
    assert table["wgt"]["bytes of it"] == "8 KiB"
    assert table["out"]["loads that nothing reads"] == 0


def test_a_cycle_has_a_line_and_its_values_are_listed(kernel):
    values = memories_of(kernel.memories()).of("wgt")
    cycle = values[3].written - 1
    scene = memories_scene(kernel.memories().at(cycle))
    assert [m["title"] for m in scene["marks"] if m["role"] == "warn"] == [f"cycle {cycle:,}"]
    listed = [row for row in rows(scene) if row["memory"] == "wgt"]
    assert [row["state"] for row in listed] == ["being written"]
    assert listed[0]["written by"] == values[3].step
    assert {row["state"] for row in rows(scene)} <= {
        "being written", "in use", "waits for its first use",
    }  # fmt: skip


def test_loads_that_are_overwritten_unread_are_counted(kernel):
    program = kernel.instructions
    first = next(n for n, s in enumerate(program.steps) if s.instruction.name == "load wgt")
    twice = [*program.steps[:first], program.steps[first]._replace(pushes=(), pops=())]
    twice += program.steps[first:]
    run = time_program(replace(program, steps=tuple(twice)))
    scene = memories_scene(MemoryMap("twice", (run,)))
    assert "Nothing reads 1 load of wgt." in scene["summary"]
    table = {row["memory"]: row for row in rows(scene)}
    assert table["wgt"]["loads that nothing reads"] == 1
    assert table["wgt"]["values"] == 16


def test_a_window_shows_the_values_in_it(kernel):
    scene = memories_scene(kernel.memories().between(600, 2600))
    assert len(boxes(scene)) < len(boxes(memories_scene(kernel.memories())))
    assert scene["summary"].endswith("Shown: cycles 600 to 2,600.")


def test_many_values_are_a_curve(parsed):
    map_ = MemoryMap("many", (time_program(repeated(3_000)),))
    assert len(memories_of(map_).values) > MOST_DRAWN
    scene = memories_scene(map_)
    assert not boxes(scene)
    curves = [m for m in scene["marks"] if m["role"] == "curve"]
    assert [c["title"] for c in curves][1] == "elements alive: at most 8"
    assert len(str(parsed(map_._repr_html_()))) < 60_000
    assert boxes(memories_scene(map_.between(1_000, 3_000)))


def test_the_curve_counts_each_element_while_its_value_is_alive(kernel):
    model = memories_of(kernel.memories())
    values, columns = model.of("wgt"), model.found.of("wgt")
    cycles, alive = alive_over_time(columns.start, columns.last_use, columns.count)
    for cycle, count in zip(cycles.tolist(), alive.tolist(), strict=True):
        assert count == sum(value.count for value in values if value.is_alive(cycle))


def test_marks_stay_inside_the_picture(kernel):
    for map_ in (kernel.memories(), kernel.memories().between(600, 2600).at(700)):
        scene = memories_scene(map_)
        for mark in scene["marks"]:
            assert 0 <= mark["x"] <= scene["width"] - mark.get("w", 0)
            assert 0 <= mark["y"] <= scene["height"] - mark.get("h", 0)


def test_hostile_names_are_text(kernel, parsed):
    map_ = replace(kernel.memories(), name=HOSTILE)
    parsed(map_._repr_html_())
    assert "<script" not in map_.svg


def test_cycles_outside_the_program_are_refused(kernel):
    with pytest.raises(UserError, match="the program does not run in it"):
        kernel.memories().at(10**9)
    with pytest.raises(UserError, match="the cycles are not in order"):
        kernel.memories().between(5, 5)
