"""The card of an accelerator, and the short texts of its programs."""

import numpy as np

from dlcompiler import target
from dlcompiler.simulate.accelerators import run_program
from dlcompiler.views.cards.accelerators import accelerator_card
from tests.accelerator_programs import product
from tests.codegen.accelerator.test_own_accelerator import UNIT

VTA = target.resolve("vta-pynq")


def test_the_card_has_memories_engines_instructions_and_queues():
    card = accelerator_card(VTA.accelerator)
    assert card["text"] == "an accelerator with 5 memories, 3 engines and 8 instructions"
    memories, engines, instructions, queues = (table["rows"] for _, table in card["tables"])
    assert memories[1] == ["vta-pynq.wgt", "int8[16, 16]", 1024, "256 KiB", "load, compute"]
    assert engines[0] == ["load", 512, "load wgt, load inp"]
    assert instructions[1] == [
        "load wgt", "load", "copies a block from DRAM to wgt; can write zeros around it"
    ]  # fmt: skip
    assert instructions[5][2] == (
        "gemm of elements of inp, wgt into acc; also into out; its micro-ops are in uop"
    )
    assert queues[0] == ["load", "compute", 255]
    assert dict(card["facts"])["cycles"] == "by the rules of profile B"


def test_an_own_one_says_what_its_intrinsic_is():
    tables = dict(accelerator_card(UNIT)["tables"])
    assert tables["Instructions"]["rows"][-1] == [
        "madd", "math",
        "total[i] += x[k, i]*y[k, i]; total in vectors, x in vectors, y in vectors",
    ]  # fmt: skip


def test_notebooks_show_the_card(parsed):
    parsed(UNIT._repr_html_())
    assert VTA._repr_html_() == VTA.accelerator._repr_html_()
    assert repr(VTA).startswith("Target('vta-pynq', Accelerator(")


def test_programs_and_runs_have_short_texts():
    program = product().instructions
    assert repr(program).startswith(f"InstructionProgram('vta-pynq', {len(program)} instructions;")
    assert all(len(repr(step)) < 200 for step in program.steps)
    inputs = {
        each.name: np.zeros(each.shape, each.dtype)
        for each in program.buffers
        if each.role == "input"
    }
    run = run_program(program, inputs)
    assert repr(run).startswith("FunctionalRun(0 findings; uop_load_nbytes ")
    assert len(repr(run)) < 300
