"""Counters equal what oclgrind counted: recorded by ``python -m tests.simulate.gpu.oclgrind``."""

import json

import pytest

from dlcompiler.passes.merge_thread_loops import merge_thread_loops
from dlcompiler.pipeline import lower_program
from dlcompiler.simulate.gpu import count_launch
from tests.simulate.gpu.oclgrind import KINDS, PROGRAMS, RECORDED

FOUND = json.loads(RECORDED.read_text("utf-8"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_instructions_equal_those_of_oclgrind(name):
    ours = []
    for launch in lower_program(*PROGRAMS[name](), "opencl").launches:
        counters = count_launch(merge_thread_loops(launch), loops=launch.loops)
        lanes = {kind: most.lanes for kind, (_, most) in counters.instructions.items()}
        # oclgrind does not tell multiplications of float32 from those of float64.
        ours.append({kind: lanes[kind] for kind in KINDS if lanes.get(kind)})
    assert ours == FOUND[name]
