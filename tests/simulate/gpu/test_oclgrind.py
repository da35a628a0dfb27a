"""Counters equal what oclgrind counted, as recorded; it finds no race in the same programs."""

import json
import os
from pathlib import Path

import pytest

from dlcompiler.codegen.gpu.barriers import inserted, without_needless
from dlcompiler.passes.merge_thread_loops import merge_thread_loops
from dlcompiler.pipeline import lower_program
from dlcompiler.simulate.gpu import count_launch
from tests.simulate.gpu.oclgrind import (
    KINDS,
    LIBRARY,
    PROGRAMS,
    RECORDED,
    WITHOUT_BARRIERS,
    in_oclgrind,
)

FOUND = json.loads(RECORDED.read_text("utf-8"))


@pytest.mark.campaign
@pytest.mark.parametrize("name", PROGRAMS)
def test_instructions_equal_those_of_oclgrind(name):
    ours = []
    for launch in lower_program(*PROGRAMS[name](), "opencl").launches:
        thread = merge_thread_loops(launch)
        thread = without_needless(launch, thread, inserted(launch, thread))
        counters = count_launch(thread, loops=launch.loops)
        lanes = {kind: most.lanes for kind, (_, most) in counters.instructions.items()}
        # oclgrind does not tell multiplications of float32 from those of float64.
        ours.append({kind: lanes[kind] for kind in KINDS if lanes.get(kind)})
    assert ours == FOUND[name]


@pytest.fixture
def oclgrind(opencl):
    """Skip the test where oclgrind is not installed; it fails when CI is set."""
    if not Path(LIBRARY).exists():
        (pytest.fail if os.environ.get("CI") else pytest.skip)("apt-get install oclgrind")


PARTS = 4


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(PARTS))
def test_oclgrind_finds_no_race(part, oclgrind):
    names = list(PROGRAMS)[part::PARTS]
    assert in_oclgrind(names, ["DATA_RACES", "UNINITIALIZED"]) == ""


@pytest.mark.campaign
@pytest.mark.parametrize("name", ["matmul 16", "softmax"])
def test_oclgrind_finds_the_races_of_missing_barriers(name, oclgrind):
    assert "data race" in in_oclgrind([WITHOUT_BARRIERS + name], ["DATA_RACES"])
