"""Cycles and intervals of instructions: equal to those of hardware, and what is refused."""

import pytest

from dlcompiler import te
from dlcompiler.simulate.accelerators import (
    InstructionError,
    InstructionProgram,
    Step,
    assemble,
    time_program,
)
from dlcompiler.simulate.accelerators.measured import YEARS, trace_of
from dlcompiler.simulate.accelerators.timing import fetching, profile_2019, profile_2021
from dlcompiler.simulate.accelerators.timing.events import Events
from dlcompiler.target.accelerators import (
    Accelerator,
    Engine,
    Memory,
    MemoryPort,
    copy,
    tensor_op,
)
from tests.share import cases_of

PUBLISHED = {
    "load_store_001": 619,
    "alu_imm_001": 1067,
    "alu_reg_001": 1654,
    "elementwise_001": 386,
    "published_gemm_001": 648,
}
"""Counts of apache/tvm pull request 3347, which the RTL of 2019 takes."""


@pytest.mark.parametrize("profile", YEARS)
def test_every_interval_is_that_of_hardware(measured, profile):
    for record, each in measured(profile):
        timed = time_program(each.program)
        assert timed.cycles == record[f"cycles_{YEARS[profile]}"], record["id"]
        assert trace_of(timed) == record[f"trace_{YEARS[profile]}"], record["id"]
        assert timed.extrapolated == ()


def test_published_counts(measured):
    counts = {
        record["id"]: time_program(each.program).cycles
        for record, each in measured("A")
        if record["id"] in PUBLISHED
    }
    assert counts == PUBLISHED


def test_what_an_instruction_waited_for(program):
    timed = time_program(
        program(
            "load inp y_size=1 x_size=4 push load->compute\n"
            "load uop pop load->compute\nload wgt y_size=1 x_size=1\nfinish"
        )
    )
    waits = [timed.wait(step) for step in range(4)]
    assert str(waits[0]) == f"waited {timed.start[0] - 1} cycles for it to be fetched"
    assert (waits[1].reason, waits[1].step) == ("load->compute", 0)
    assert str(waits[2]) == "did not wait"
    assert timed.cycles == timed.start[3]
    assert timed.busy["load"] == sum(timed.end[timed.of("load")] - timed.start[timed.of("load")])
    assert "simulated, profile B" in repr(timed)


def test_the_port_makes_others_wait(program):
    for profile in YEARS:
        both = program("load inp y_size=1 x_size=64\nload acc y_size=1 x_size=64\nfinish", profile)
        timed = time_program(both)
        assert timed.port_wait[1] > 0, profile
        assert "for the memory port" in str(timed.wait(1))


def test_deadlock_names_who_waits(program):
    with pytest.raises(InstructionError) as caught:
        time_program(program("load uop pop load->compute\nfinish"))
    assert caught.value.kind == "deadlock"
    assert caught.value.step == 0
    assert "compute at instruction 0 for load->compute" in str(caught.value)
    assert "0: load uop pop load->compute" in str(caught.value)


def test_tokens_that_are_left(program):
    with pytest.raises(InstructionError, match="tokens are left") as caught:
        time_program(program("load inp push load->compute\nfinish"))
    assert "1 in load->compute" in str(caught.value)


def test_a_queue_of_tokens_has_255_places(program):
    pushes = "load inp push load->compute\n"
    pops = "load uop pop load->compute\n"
    late = "load acc y_size=1 x_size=2000\n"
    assert time_program(program(pushes * 255 + late + pops * 255 + "finish")).cycles
    with pytest.raises(InstructionError) as caught:
        time_program(program(late + pushes * 256 + pops * 256 + "finish"))
    assert caught.value.kind == "token overflow"


def test_a_program_without_finish_never_ends(program):
    with pytest.raises(InstructionError, match="it never finishes"):
        time_program(program("load inp y_size=1 x_size=1"))
    with pytest.raises(InstructionError, match="it never finishes"):
        time_program(program(""))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("load inp x_size=4\nfinish", "a copy of rows without a row"),
        ("load inp y_size=1 x_pad_0=1\nfinish", "zeros around a copy of nothing"),
        ("gemm iter_out=1 iter_in=1\nfinish", "without a micro-op"),
        ("load inp sram_base=2047 y_size=1 x_size=2\nfinish", "it leaves inp: element 2048"),
        ("alu uop_end=1 iter_out=1 iter_in=1 operation=4\nfinish", "no such operation: 4"),
        ("gemm uop_end=8193 iter_out=1 iter_in=1\nfinish", "its micro-ops leave uop"),
    ],
)
def test_what_hardware_does_not_do(program, text, problem):
    with pytest.raises(InstructionError, match=problem):
        time_program(program(text))


def test_another_configuration_is_extrapolated(machine, program):
    given = program("load wgt y_size=1 x_size=8\nfinish")
    wide = machine(LOG_BUS_WIDTH=7, LOG_WGT_BUFF_SIZE=15)
    timed = time_program(
        InstructionProgram(wide, assemble(wide, "load wgt y_size=1 x_size=8\nfinish"))
    )
    assert timed.extrapolated == ("a bus of 16 bytes (measured: 8)", "the memory wgt")
    assert timed.cycles < time_program(given).cycles
    assert "extrapolated" in repr(timed)


def with_port(program, port):
    accelerator = program.accelerator.with_(port=port)
    steps = (
        step._replace(instruction=accelerator.instruction(step.instruction.name))
        for step in program.steps
    )
    return InstructionProgram(accelerator, tuple(steps))


@pytest.mark.parametrize("profile", YEARS)
def test_a_faster_memory_is_never_slower(measured, profile):
    # Rows of one beat are left out: profile B issues no request in the cycle of a last beat.
    for record, each in cases_of(measured(profile)):
        if record["family"] == "single_load":
            continue
        ports = [MemoryPort(4, 64), MemoryPort(4, 16), MemoryPort(8, 16), MemoryPort(8, 0),
                 MemoryPort(16, 0)]  # fmt: skip
        cycles = [time_program(with_port(each.program, port)).cycles for port in ports]
        assert cycles == sorted(cycles, reverse=True), record["id"]


@pytest.fixture
def toy():
    a = te.placeholder((4,), "int32", name="a")
    b = te.placeholder((4,), "int32", name="b")
    add = te.decl_tensor_intrin(
        te.compute((4,), lambda i: a[i] + b[i], name="c").op, lambda ins, outs: "array"
    )
    return Accelerator(
        "toy-timed",
        memories=[Memory("tile", (4,), "int32", 64), Memory("sum", (4,), "int32", 16)],
        engines=[Engine("load", queue=4), Engine("array"), Engine("store")],
        instructions=[
            copy("load", into="tile", cycles=lambda n: 6 + n),
            tensor_op("array", add, cycles=lambda n: 3 + n, memories=("sum", "tile", "tile")),
            copy("store", out_of="sum"),
        ],
    )


def test_an_accelerator_of_ones_own(toy):
    timed = time_program(
        InstructionProgram(
            toy,
            assemble(
                toy,
                "load tile y_size=1 x_size=2 push load->array\n"
                f"{toy.instructions[1].name} iter_out=1 iter_in=1 src=0 wgt=1"
                " pop load->array push array->store\n"
                "store sum y_size=1 x_size=1 pop array->store",
            ),
        )
    )
    # Dispatched in cycle 0, accepted in 1; 6 + 2 cycles; 3 + 1; latency 16 and 2 beats.
    assert timed.start.tolist() == [2, 11, 16]
    assert timed.end.tolist() == [10, 15, 34]
    assert timed.cycles == 34
    assert timed.extrapolated == ()


def test_copies_of_two_engines_share_the_port():
    machine = Accelerator(
        "two-loads",
        memories=[Memory("x", (4,), "int32", 8), Memory("y", (4,), "int32", 8)],
        engines=[Engine("first"), Engine("second")],
        instructions=[copy("first", into="x"), copy("second", into="y")],
        port=MemoryPort(8, 5),
    )
    text = "load x y_size=1 x_size=4\nload y y_size=2 x_size=2 x_stride=2"
    timed = time_program(InstructionProgram(machine, assemble(machine, text)))
    # Each takes the latency of 5 and 8 beats; the second one starts in cycle 3, and waits for 15.
    assert timed.start.tolist() == [2, 3]
    assert timed.end.tolist() == [15, 28]
    assert timed.wait(1).port_cycles == 12


def test_a_cost_must_be_a_number_of_cycles(toy):
    wrong = toy.with_(instructions=[copy("load", into="tile", cycles=lambda n: n / 2),
                                    *toy.instructions[1:]])  # fmt: skip
    with pytest.raises(InstructionError, match="takes no number of cycles"):
        time_program(InstructionProgram(wrong, assemble(wrong, "load tile y_size=1 x_size=1")))


def test_a_queue_that_the_machine_lacks(machine):
    step = assemble(machine(), "finish")[0]
    wrong = Step(step.instruction, step.values, ("load->store",))
    with pytest.raises(InstructionError, match="no such token queue"):
        time_program(InstructionProgram(machine(), (wrong,)))


@pytest.mark.parametrize("profile", YEARS)
def test_what_is_done_at_once_takes_as_long_as_event_after_event(measured, monkeypatch, profile):
    fast = [trace_of(time_program(each.program)) for _, each in measured(profile)]
    monkeypatch.setattr(Events, "next_time", lambda self: 0)  # something else is always next
    assert [trace_of(time_program(each.program)) for _, each in measured(profile)] == fast


CONSTANTS = [
    (profile_2019, "A", name)
    for name in (
        "LAUNCH", "AFTER_DISPATCH", "BURST_BEATS", "READ_SETUP", "WRITE_SETUP", "GEMM_CYCLES",
        "GEMM_DRAIN", "ALU_IMMEDIATE_CYCLES", "ALU_REGISTER_CYCLES",
    )
] + [
    (profile_2021, "B", name)
    for name in (
        "LAUNCH", "AFTER_DISPATCH", "BURST_BEATS", "OUTSTANDING", "FETCHED", "UOPS_LOADED",
        "VECTORS_LOADED", "WRITE_SETUP", "PIPELINE", "ALU_REGISTER_CYCLES",
    )
] + [(fetching, "A", "CHUNK"), (fetching, "B", "CHUNK")]  # fmt: skip


@pytest.mark.campaign
@pytest.mark.parametrize(("module", "profile", "name"), CONSTANTS)
def test_the_kept_programs_notice_each_constant(measured, monkeypatch, module, profile, name):
    monkeypatch.setattr(module, name, getattr(module, name) - 1)
    changed = [
        record["id"]
        for record, each in measured(profile)
        if time_program(each.program).cycles != record[f"cycles_{YEARS[profile]}"]
    ]
    assert changed
