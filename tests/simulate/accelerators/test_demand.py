"""Operations and bytes of a program, and the peak of an accelerator."""

from dataclasses import replace

import pytest

from dlcompiler.errors import UserError
from dlcompiler.simulate.accelerators.demand import (
    bandwidth_of,
    demand_of,
    operations_of_update,
    peak_of,
)
from dlcompiler.simulate.accelerators.errors import InstructionError
from dlcompiler.simulate.accelerators.timing.run import time_program
from dlcompiler.simulate.accelerators.timing.waits import tokens_of, waits_of
from dlcompiler.target.accelerators.vta import VtaConfig, vta
from tests.accelerator_programs import product, repeated, toy, toy_product


def test_operations_and_bytes_are_those_of_the_product():
    demand = demand_of(product().instructions)
    assert demand.operations == 2 * 256 * 256
    assert demand.elementwise == 256  # the shift
    assert demand.loaded["wgt"] == 256 * 256
    assert demand.loaded["inp"] == 2 * 256  # each of two passes over the rows
    assert demand.stored == {"out": 256}
    assert demand.instruction_bytes == 16 * len(product().instructions)
    assert demand.bytes == 256 * 256 + 3 * 256 + demand.loaded["uop"] + demand.instruction_bytes
    assert demand.intensity == demand.operations / demand.bytes


def test_demands_of_parts_are_added():
    one = demand_of(product().instructions)
    both = one + one
    assert (both.operations, both.bytes) == (2 * one.operations, 2 * one.bytes)
    assert both.intensity == one.intensity


def test_the_peak_follows_from_the_rules_of_time():
    # A micro-op of 1×16 by 16×16 takes four cycles in the RTL of 2019, and one in that of 2021.
    assert peak_of(vta("a", VtaConfig(profile="A"))) == 128
    assert peak_of(vta("b", VtaConfig(profile="B"))) == 512
    assert peak_of(vta("wide", VtaConfig(LOG_BATCH=1))) == 1024
    machine = toy()
    assert operations_of_update(machine, machine.instruction("toy_product")) == 2 * 4**3
    assert peak_of(machine) == 2 * 4**3 / 2


def test_copies_with_cycles_of_their_own_do_not_use_the_port():
    assert bandwidth_of(toy()) == 64 + 64  # an element a cycle, in and out
    assert bandwidth_of(vta("wide", VtaConfig(LOG_BUS_WIDTH=7))) == 16
    machine = toy()
    load, *others = machine.instructions
    slow = machine.with_(name="slow", instructions=[replace(load, cycles=None), *others])
    assert bandwidth_of(slow) == 64 + machine.port.bytes_per_cycle


def test_a_copy_that_takes_no_number_of_cycles():
    load, *others = toy().instructions
    broken = replace(load, cycles=lambda n: "many")
    machine = toy().with_(name="broken", instructions=[broken, *others])
    with pytest.raises(InstructionError, match="takes no number of cycles"):
        bandwidth_of(machine)


def test_instructions_count_where_they_are_fetched():
    kernel = product()
    assert demand_of(kernel.instructions).instruction_bytes > 0
    assert demand_of(toy_product().instructions).instruction_bytes == 0


def test_an_accelerator_that_only_copies_has_no_peak():
    machine = toy()
    copies = [each for each in machine.instructions if each.is_copy]
    with pytest.raises(UserError, match="it has no tensor instruction"):
        peak_of(machine.with_(name="copies", instructions=copies, queues=None))


@pytest.mark.parametrize("profile", ["A", "B"])
def test_waits_are_the_idle_cycles_before_each_instruction(profile):
    run = time_program(repeated(300, profile))
    for engine, waits in waits_of(run).items():
        expected = {}
        for step in run.of(engine):
            wait = run.wait(step)
            if wait.cycles:
                expected[wait.reason] = expected.get(wait.reason, 0) + wait.cycles
        assert waits == expected
    assert waits_of(run)["compute"]["load->compute"] > 0


def test_tokens_match_in_the_order_of_their_queue():
    program = repeated(300)
    tokens = tokens_of(program)
    assert len(tokens) == sum(len(step.pops) for step in program.steps)
    run = time_program(program)
    for token in tokens:
        assert token.queue in program.steps[token.pushed_by].pushes
        assert token.queue in program.steps[token.popped_by].pops
        assert run.end[token.pushed_by] < run.start[token.popped_by]
