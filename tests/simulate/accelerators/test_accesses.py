"""Which elements each instruction accesses, against what the functional simulator does."""

import numpy as np
import pytest

from dlcompiler.simulate.accelerators import InstructionProgram, Step
from dlcompiler.simulate.accelerators.accesses import accesses_of, dense
from dlcompiler.target.accelerators.encodings import operand_fields
from dlcompiler.target.accelerators.vta import preset
from tests.accelerator_programs import product, toy

VTA = preset("vta-pynq")


def step(machine, name, **fields):
    instruction = machine.instruction(name)
    names = operand_fields(machine, instruction)
    assert set(fields) <= set(names)
    return Step(instruction, tuple(fields.get(each, 0) for each in names))


def test_a_load_writes_its_rows_and_the_zeros_around_them():
    load = step(VTA, "load inp", sram_base=7, y_size=2, x_size=3, x_stride=9, y_pad_0=1, x_pad_1=2)
    ((access,),) = accesses_of(InstructionProgram(VTA, (load,)))
    assert access == ("inp", slice(7, 7 + (1 + 2) * (3 + 2)), "write")


def test_a_store_reads_and_what_moves_nothing_accesses_nothing():
    steps = (step(VTA, "store", sram_base=3, y_size=1, x_size=4), step(VTA, "load uop"),
             step(VTA, "finish"))  # fmt: skip
    assert list(accesses_of(InstructionProgram(VTA, steps))) == [
        [("out", slice(3, 7), "read")], [], [],
    ]  # fmt: skip


@pytest.mark.parametrize("threads", [1, 2])
def test_a_product_reads_what_was_loaded_and_stores_what_was_computed(threads):
    kernel = product(virtual_threads=threads)
    written = {memory.name: np.zeros(memory.depth, bool) for memory in VTA.memories}
    for accesses in accesses_of(kernel.instructions):
        for memory, elements, how in accesses:
            if how != "write":
                assert written[memory][elements].all()
        for memory, elements, how in accesses:
            if how == "write":
                written[memory][elements] = True
    assert all(each.any() for each in written.values())


def test_micro_ops_are_those_that_were_loaded_last():
    micro_ops = np.array([[1, 2, 3], [4, 5, 6]])
    steps = []
    for source in (0, 1):
        steps.append(step(VTA, "load uop", dram_base=25 + source, y_size=1, x_size=1, x_stride=1))
        steps.append(
            step(VTA, "gemm", uop_end=1, iter_out=2, iter_in=3, dst_factor_in=1, src_factor_out=10)
        )
    program = InstructionProgram(VTA, tuple(steps), (), micro_ops, micro_op_address=100)
    _, first, _, second = accesses_of(program)
    assert first[1] == ("acc", slice(1, 4), "update")
    assert (first[2].memory, first[2].elements.tolist()) == ("inp", [2, 12])
    assert first[3] == ("wgt", slice(3, 4), "read")
    assert first[4] == ("out", slice(1, 4), "write")
    assert second[1] == ("acc", slice(4, 7), "update")


def test_a_reset_writes_only_its_result_and_reads_nothing_else():
    program = InstructionProgram(
        VTA, (step(VTA, "gemm", reset=1, uop_end=1, iter_out=1, iter_in=1),),
        (), np.zeros((0, 3), np.int64),
    )  # fmt: skip
    ((uop, acc),) = accesses_of(program)
    assert [uop.how, acc.how] == ["read", "write"]
    assert acc.memory == "acc"


def test_an_instruction_without_micro_ops_has_its_operands_in_its_fields():
    machine = toy()
    steps = (step(machine, "toy_product", dst=1, src=2, wgt=5, iter_out=2, iter_in=1,
                  src_factor_out=1),)  # fmt: skip
    assert list(accesses_of(InstructionProgram(machine, steps))) == [[
        ("sum", slice(1, 2), "update"), ("tile", slice(2, 4), "read"),
        ("tile", slice(5, 6), "read"),
    ]]  # fmt: skip


def test_only_dense_elements_are_a_slice():
    assert dense(np.array([3, 4, 5])) == slice(3, 6)
    assert dense(np.array([3, 5])).tolist() == [3, 5]
