"""What `make figures` measures is what the quickstart notebook shows."""

import json
import re
from pathlib import Path

import pytest

from dlcompiler.bench.quickstart import plain, register_tile
from dlcompiler.measurement import verify
from dlcompiler.measurement.fma_peak import ACCUMULATORS, _fma_loop, fma_peak_gflops
from dlcompiler.runtime.llvm import Options, compile_ir
from dlcompiler.target import resolve

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "01_quickstart.ipynb"


def test_both_schedules_are_right():
    for make in (plain, register_tile):
        schedule, args = make(64)
        assert verify(schedule, args).worst <= 1


def test_the_notebook_takes_the_same_steps():
    """Compare the primitives and their arguments; the names of the tensors differ."""
    read = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in read["cells"]]
    source = next(cell for cell in cells if "def register_tile" in cell)
    in_notebook = re.findall(
        r"\.(cache_write|tile|compute_at|split|reorder|unroll|vectorize)\(", source
    )
    schedule, _ = register_tile(64)
    assert in_notebook == [step.primitive for step in schedule.trace.steps]


def test_the_peak_is_a_rate():
    assert fma_peak_gflops(1, repeats=1) > 0.1


@pytest.mark.skipif(not resolve("cpu").has("fma"), reason="counts instructions of x86-64's FMA")
def test_the_peak_counts_the_multiply_adds_that_run():
    target = resolve("cpu")
    loop = compile_ir(_fma_loop(target.lanes("float32")), Options.for_target(target))
    assert loop.assembly.count("vfmadd") == ACCUMULATORS
