"""Pragmas of accelerators: one copy from a loop on, and instructions that are left out."""

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.errors import CallError, ScheduleError
from dlcompiler.simulate.accelerators import load_program, run_program
from tests.codegen.accelerator import vta_schedules as cases


@pytest.fixture
def machine():
    return cases.machine()


def _copied(machine, shape, source):
    """Return a schedule that loads what `source` says, adds 1 and stores; with its tensors."""
    x = te.placeholder(shape, "int32", name="x")
    loaded = te.compute(shape, lambda *i: x(*source(*i)), "loaded")
    result = te.compute(shape, lambda *i: loaded(*i) + 1, "result")
    out = te.compute(shape, lambda *i: result(*i).astype("int8"), "out")
    s = te.create_schedule(out.op)
    for tensor in (loaded, result):
        s[tensor].set_scope(machine.scope_of("acc"))
    return s, x, loaded, out


def _loads(kernel):
    return sum(step.instruction.name == "load acc" for step in kernel.instructions.steps)


def test_a_copy_begins_where_the_pragma_is(machine):
    s, x, loaded, out = _copied(machine, (1, 3, 2, 1, 16), lambda a, i, *rest: (a, 2 - i, *rest))
    kernel = dlc.build(s, [x, out], machine.target)
    assert _loads(kernel) == 3
    s[loaded].pragma(loaded.op.axis[2], "dma_copy")
    assert _loads(dlc.build(s, [x, out], machine.target)) == 3
    # The first loop has one iteration and goes away: its pragma is about the loops inside.
    s, x, loaded, out = _copied(machine, (1, 3, 2, 1, 16), lambda a, i, *rest: (a, 2 - i, *rest))
    s[loaded].pragma(loaded.op.axis[0], "dma_copy")
    with pytest.raises(ScheduleError, match=r"cannot detect a 2-D pattern: the loop loaded\.i1"):
        dlc.build(s, [x, out], machine.target)


def test_a_copy_of_rows_and_columns_is_one(machine):
    s, x, loaded, out = _copied(machine, (4, 3, 1, 16), lambda *i: i)
    s[loaded].pragma(loaded.op.axis[0], "dma_copy")
    assert _loads(dlc.build(s, [x, out], machine.target)) == 1


def test_what_is_no_copy_is_refused(machine):
    s, x, _, out = _copied(machine, (4, 3, 1, 16), lambda *i: i)
    result = s.stages[-2]
    result.pragma(result.op.axis[0], "dma_copy")
    with pytest.raises(ScheduleError, match="it is no copy"):
        dlc.build(s, [x, out], machine.target)


def test_other_targets_ignore_pragmas_of_accelerators():
    x = te.placeholder((4, 16), name="x")
    y = te.compute((4, 16), lambda i, j: x[i, j] + 1.0, "y")
    s = te.create_schedule(y.op)
    for name in ("dma_copy", "alu", "skip_dma_copy", "skip_alu"):
        s[y].pragma(y.op.axis[0], name)
    out = np.zeros((4, 16), "float32")
    dlc.build(s, [x, y])(np.zeros((4, 16), "float32"), out)
    assert (out == 1).all()


@pytest.mark.parametrize("lowering", ["exact", "classic"])
def test_a_program_without_some_instructions(lowering, tmp_path):
    machine = cases.machine(lowering=lowering)
    case = cases.relu(machine)
    whole = case.build(machine)
    for stage in case.schedule.stages[2:4]:
        stage.pragma(stage.op.axis[0], "skip_alu")
    kernel = case.build(machine)
    names = [step.instruction.name for step in kernel.instructions.steps]
    assert "alu" not in names
    assert kernel.report().cycles < whole.report().cycles
    with pytest.raises(CallError, match="leaves out instructions"):
        kernel(*case.arrays(), np.zeros((8, 10, 1, 16), "int8"))
    kernel.instructions.save(tmp_path / "program")
    program = load_program(tmp_path / "program")
    assert program.is_partial
    assert program.accelerator.lowering == lowering
    with pytest.raises(CallError, match="leaves out instructions"):
        run_program(program, {})
