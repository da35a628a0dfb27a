"""Values, counters, and what is found wrong."""

from dataclasses import replace

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import CallError
from dlcompiler.simulate.accelerators import (
    DramBuffer,
    InstructionError,
    InstructionProgram,
    assemble,
    run_program,
    time_program,
)
from dlcompiler.simulate.accelerators.images import dram_image
from dlcompiler.simulate.accelerators.measured import compare
from dlcompiler.target.accelerators import (
    Accelerator,
    Engine,
    Instruction,
    Memory,
    copy,
    tensor_op,
)
from dlcompiler.target.accelerators.encodings import operand_fields
from tests.share import cases_of

HAZARDS = {
    "hazard_gemm": "consecutive updates",
    "hazard_one_update": "one update",
    "hazard_split_pad": "split row",
}


@pytest.mark.parametrize("profile", ["A", "B"])
def test_values_counters_and_faults_are_those_of_hardware(measured, profile):
    for record, each in measured(profile):
        found = compare(each)
        assert found.outputs_equal in (None, True), record["id"]
        fault = HAZARDS.get(record["family"]) if profile == "A" else None
        assert (found.problem is None) == (fault is None), (record["id"], found.problem)
        assert fault is None or fault in found.problem
        counters = run_program(each.program, each.dram, collect=True).counters
        expected = {k: v for k, v in record["counters"].items() if not k.startswith("busy")}
        assert counters == {**counters, **expected}, record["id"]


def test_all_updates_at_a_time_and_one_after_another_are_equal(measured):
    for record, each in cases_of(measured("B")):
        if len(each.program) < 300:
            slow = run_program(each.program, each.dram, by_steps=True)
            fast = run_program(each.program, each.dram)
            assert (slow.dram == fast.dram).all(), record["id"]
            assert slow.counters == fast.counters


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(20))
def test_any_order_of_the_engines_gives_the_same_values(measured, seed):
    for record, each in measured("B"):
        if len(each.program) < 60:
            other = run_program(each.program, each.dram, seed=seed)
            assert (other.dram == run_program(each.program, each.dram).dram).all(), record["id"]


def without_token(program, step, verb, queue):
    steps = list(program.steps)
    kept = tuple(name for name in getattr(steps[step], verb) if name != queue)
    steps[step] = steps[step]._replace(**{verb: kept})
    return InstructionProgram(
        program.accelerator, tuple(steps), micro_ops=program.micro_ops,
        micro_op_address=program.micro_op_address, dram_bytes=program.dram_bytes,
    )  # fmt: skip


def token_pairs(program):
    """Yield each token: its queue, the instruction that pushes it, the one that pops it."""
    for queue in program.accelerator.queues:
        pushes = [n for n, step in enumerate(program.steps) if queue.name in step.pushes]
        pops = [n for n, step in enumerate(program.steps) if queue.name in step.pops]
        yield from ((queue.name, *pair) for pair in zip(pushes, pops, strict=True))


@pytest.mark.campaign
@pytest.mark.parametrize("number", range(40))
def test_a_token_that_is_left_out_is_missed_or_redundant(measured, number):
    programs = [each for _, each in measured("B") if 8 < len(each.program) < 60]
    each = programs[number % len(programs)]
    good = run_program(each.program, each.dram)
    for queue, push, pop in token_pairs(each.program):
        half = without_token(each.program, push, "pushes", queue)
        with pytest.raises(InstructionError) as caught:
            run_program(half, each.dram)
        assert caught.value.kind in ("deadlock", "race", "uninitialised")
        whole = without_token(half, pop, "pops", queue)
        try:
            runs = [run_program(whole, each.dram, seed=seed) for seed in (None, 1, 2, 3)]
        except InstructionError as error:
            assert error.kind in ("race", "uninitialised", "deadlock")  # noqa: PT017
            assert error.step is not None  # noqa: PT017
        else:  # redundant: no order of the engines can tell
            assert all((run.dram == good.dram).all() for run in runs)


START = "load uop dram_base=1024 y_size=1 x_size=16\n"
TILE = "y_size=1 x_size=4 x_stride=4"


def refused(program, text, **options):
    given = program(text)
    with pytest.raises(InstructionError) as caught:
        run_program(given, dram_image(given, {}), **options)
    return caught.value


def test_a_read_of_what_was_never_written(program):
    error = refused(program, f"{START}store {TILE}\nfinish")
    assert error.kind == "uninitialised"
    assert "it reads element 0 of out, which was never written" in str(error)
    error = refused(program, "gemm uop_end=1 iter_out=1 iter_in=1\nfinish")
    assert "element 0 of uop" in str(error)
    loaded = f"{START}load acc {TILE}\ngemm uop_end=1 iter_out=1 iter_in=2 dst_factor_in=1\nfinish"
    assert "element 0 of inp" in str(refused(program, loaded))


def test_a_store_reads_results_of_computing_only(program):
    error = refused(program, f"{START}load acc {TILE}\nstore {TILE}\nfinish")
    assert "of out, which was never written" in str(error)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"load inp dram_base=20000 {TILE}\nfinish", "it leaves DRAM"),
        (f"{START}gemm reset=1 uop_end=2 iter_out=3 iter_in=1 dst_factor_out=1024\nfinish",
         "dst leaves the memory acc"),
    ],
)  # fmt: skip
def test_out_of_bounds(program, text, problem):
    error = refused(program, text)
    assert (error.kind, problem in str(error)) == ("out_of_bounds", True)


RACE = (
    f"{START}load acc {TILE}\n"
    "load inp y_size=1 x_size=4 push load->compute\n"
    "load wgt y_size=1 x_size=4 push load->compute\n"
    "gemm uop_end=4 iter_out=1 iter_in=1 pop load->compute\n"
    "load uop pop load->compute\nfinish"
)


def test_a_race_names_both_instructions(program):
    given = program(RACE)
    with pytest.raises(InstructionError) as caught:
        run_program(given, dram_image(given, {}))
    error = caught.value
    assert (error.kind, error.step) == ("race", 4)
    assert "it reads element 0 of wgt, which instruction 3 of load writes at any time" in str(error)
    assert "> 4: gemm" in str(error)


def test_the_excerpt_is_short_and_keeps_the_tokens(program):
    copies = "load inp y_size=1 x_size=4\n" * 40
    many = " ".join(f"{name}=4095" for name in ("sram_base", "dram_base", "y_size", "x_stride"))
    wide = f"load inp {many} x_size=4 x_pad_0=15 x_pad_1=15 y_pad_0=15 push load->compute\n"
    error = refused(program, f"{copies}{wide}{copies}finish")
    lines = error.excerpt.splitlines()
    assert len(lines) <= 12
    assert max(map(len, lines)) <= 100
    (marked,) = (line for line in lines if line.startswith(">"))
    assert marked.startswith("> 40: load inp sram_base=4095")
    assert marked.endswith("… push load->compute")


def test_findings_can_be_collected(program):
    given = program(RACE)
    found = run_program(given, dram_image(given, {}), collect=True).findings
    assert [each.kind for each in found] == ["race"]


def test_data_that_is_overwritten_too_early(program):
    text = (
        f"{START}load acc {TILE}\nload wgt {TILE}\nload inp {TILE} push load->compute\n"
        "gemm uop_end=4 iter_out=1 iter_in=1 pop load->compute\n"
        f"load inp {TILE}\nfinish"
    )
    error = refused(program, text)
    assert error.kind == "race"
    assert "it writes element 0 of inp, which instruction 4 of compute reads at any time" in str(
        error
    )


def test_a_race_in_dram(program):
    alu = "alu uop_end=4 iter_out=1 iter_in=1 operation=2 use_imm=1 imm=1"
    start = f"{START}load acc {TILE}\n{alu} push compute->store\n"
    store = f"store dram_base=64 {TILE} pop compute->store"
    racing = f"{start}{store}\nload acc dram_base=16 {TILE}\nfinish"
    error = refused(program, racing)
    assert (error.kind, "byte 1024 of DRAM" in str(error)) == ("race", True)
    ordered = (
        f"{start}{store} push store->compute\n"
        f"load acc dram_base=16 {TILE} pop store->compute\nfinish"
    )
    given = program(ordered)
    run_program(given, dram_image(given, {}))


def test_deadlock_and_tokens_that_are_left(program):
    assert refused(program, "load inp pop compute->load\nfinish").kind == "deadlock"
    assert refused(program, "load inp push load->compute\nfinish").kind == "leftover tokens"
    pushes, pops = "load inp push load->compute\n" * 256, "load uop pop load->compute\n" * 256
    given = program(pushes + pops + "finish")
    run_program(given, dram_image(given, {}))  # the compute engine can take them in time
    late = program(
        "load uop pop store->compute\n" + pushes + pops
        + "store pop compute->store push store->compute\nload uop push compute->store\nfinish"
    )  # fmt: skip
    with pytest.raises(InstructionError) as caught:
        run_program(late, dram_image(late, {}))
    assert caught.value.kind in ("token overflow", "deadlock")


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ("operation=3 use_imm=1 imm=-16", "shift by this amount"),
        ("operation=3 use_imm=1 imm=32", "shift by this amount"),
        ("operation=3 imm=-1", "negative immediate"),
        ("operation=3", "an amount that hardware cuts off"),
    ],
)
def test_shifts_on_which_machines_differ(program, fields, problem):
    given = program(f"{START}load acc {TILE}\nalu uop_end=4 iter_out=1 iter_in=1 {fields}\nfinish")
    dram = dram_image(given, {})
    dram[:256] = 255
    with pytest.raises(InstructionError, match=problem):
        run_program(given, dram)


def alu(program, fields, micro_ops, values, profile="B"):
    """Return the accumulators after an ALU instruction, and those of the slow path."""
    given = program(
        f"load uop dram_base=1024 y_size=1 x_size={len(micro_ops)}\n"
        f"load acc y_size=1 x_size={len(values)}\n"
        f"alu uop_end={len(micro_ops)} {fields}\nfinish",
        profile, micro_ops,
    )  # fmt: skip
    dram = dram_image(given, {})
    data = np.repeat(np.array(values, dtype="<i4"), 16)
    dram[: data.nbytes] = data.view(np.uint8)
    runs = [run_program(given, dram, by_steps=slow, collect=True) for slow in (False, True)]
    found = [run.memories["acc"][: len(values), 0, 0].tolist() for run in runs]
    assert found[0] == found[1]
    return found[0]


def test_updates_of_one_accumulator_add_up(program):
    fields = "iter_out=1 iter_in=3 src_factor_in=1 operation=2"
    assert alu(program, fields, [[0, 1, 0]], [1, 10, 100, 1000]) == [1111, 10, 100, 1000]
    # Each update reads what the update before wrote: a running sum.
    fields = "iter_out=1 iter_in=3 dst_factor_in=1 src_factor_in=1 operation=2"
    assert alu(program, fields, [[1, 0, 0]], [1, 10, 100, 1000]) == [1, 11, 111, 1111]
    # The other way round, each update reads what was there.
    assert alu(program, fields, [[0, 1, 0]], [1, 10, 100, 1000]) == [11, 110, 1100, 1000]


def test_numbers_wrap(program):
    fields = "iter_out=1 iter_in=1 operation=2 use_imm=1 imm=1"
    assert alu(program, fields, [[0, 0, 0]], [2**31 - 1]) == [-(2**31)]
    fields = "iter_out=1 iter_in=1 operation=3 use_imm=1 imm=-4"
    assert alu(program, fields, [[0, 0, 0]], [0x12345678]) == [0x23456780]


def test_random_gemm_instructions(machine):
    random = np.random.default_rng(11)
    for parameters in ({}, {"LOG_BATCH": 1, "LOG_BLOCK_IN": 5}, {"LOG_INP_WIDTH": 4}):
        own = machine(**parameters)
        for _ in range(15):
            count = int(random.integers(1, 9))
            micro_ops = random.integers(0, 4, (count, 3))
            outer, inner = random.integers(1, 5, 2)
            factors = random.integers(0, 3, 6)
            names = [f"{name}_factor_{way}" for name in ("dst", "src", "wgt")
                     for way in ("out", "in")]  # fmt: skip
            loops = " ".join(f"{name}={n}" for name, n in zip(names, factors, strict=True))
            text = (
                f"load uop dram_base=65536 y_size=1 x_size={count}\n"
                "load acc y_size=1 x_size=32\nload inp dram_base=512 y_size=1 x_size=32\n"
                "load wgt dram_base=64 y_size=1 x_size=32 push load->compute\n"
                f"gemm uop_end={count} iter_out={outer} iter_in={inner} {loops}"
                " pop load->compute\nfinish"
            )
            program = InstructionProgram(
                own, assemble(own, text), micro_ops=micro_ops, micro_op_address=4 * 65536,
                dram_bytes=1 << 19,
            )  # fmt: skip
            dram = dram_image(program, {})
            dram[: 1 << 18] = random.integers(0, 256, 1 << 18)
            runs = [run_program(program, dram, by_steps=slow) for slow in (False, True)]
            for name in ("acc", "out"):
                assert (runs[0].memories[name] == runs[1].memories[name]).all(), (text, parameters)


def test_elementwise_instructions_of_ones_own():
    operands = {"sum": "row", "left": "row"}
    own = Accelerator(
        "toy-elementwise", [Memory("row", (4,), "int16", 8)], [Engine("unit")],
        [copy("unit", into="row"), copy("unit", out_of="row"),
         Instruction("vector", "unit", "elementwise", operands=operands,
                     operations=("sub", "xor"), cycles=lambda n: n)],
    )  # fmt: skip
    text = (
        "load row y_size=1 x_size=3\n"
        "vector iter_out=1 iter_in=2 sum=1 sum_factor_in=1 left=0 left_factor_in=1\n"
        "store row y_size=1 x_size=3"
    )
    buffers = (DramBuffer("A", 0, (3, 4), "int16"),)
    program = InstructionProgram(own, assemble(own, text), buffers, dram_bytes=64)
    given = np.array([[1], [10], [100]], dtype="int16").repeat(4, axis=1)
    for by_steps in (False, True):
        run = run_program(program, {"A": given}, by_steps=by_steps)
        assert run.array("A")[:, 0].tolist() == [1, 9, 91]
    unknown = assemble(own, text.replace("vector ", "vector operation=1 "))
    program = InstructionProgram(own, unknown, buffers, dram_bytes=64)
    with pytest.raises(InstructionError, match="an operation that is not known here"):
        run_program(program, {"A": given})


def test_random_alu_instructions(program):
    random = np.random.default_rng(5)
    for _ in range(60):
        count = int(random.integers(1, 5))
        micro_ops = random.integers(0, 4, (count, 3))
        outer, inner = random.integers(1, 4, 2)
        factors = random.integers(0, 3, 4)
        fields = (
            f"iter_out={outer} iter_in={inner} operation={random.integers(3)}"
            f" dst_factor_out={factors[0]} dst_factor_in={factors[1]}"
            f" src_factor_out={factors[2]} src_factor_in={factors[3]}"
        )
        alu(program, fields, micro_ops, random.integers(-50, 50, 16))


@pytest.mark.parametrize(
    ("fields", "profile", "problem"),
    [
        ("operation=0 use_imm=1 imm=-3", "A", "min with a negative immediate"),
        ("src_factor_in=1 operation=2 use_imm=1 imm=1", "B", "reads the source"),
        ("operation=2 use_imm=1 imm=1", "B", "the hardware stops"),
    ],
)
def test_faults_of_the_alu(program, fields, profile, problem):
    given = program(
        f"{START}load acc {TILE}\nalu uop_end=1 iter_out=1 iter_in=2 {fields}\nfinish", profile
    )
    with pytest.raises(InstructionError, match=problem) as caught:
        run_program(given, dram_image(given, {}))
    assert caught.value.kind == "hazard"


def test_faults_of_loads_of_micro_ops(program):
    text = "load uop sram_base=1 dram_base=1024 y_size=1 x_size=2\nfinish"
    given = program(text, "A")
    with pytest.raises(InstructionError, match="odd micro-ops"):
        run_program(given, dram_image(given, {}))
    # The third micro-op came with the second beat; nobody knows what it is.
    text = (
        "load uop dram_base=1024 y_size=1 x_size=4\nload uop dram_base=1024 y_size=1 x_size=3\n"
        "gemm reset=1 uop_end=4 iter_out=1 iter_in=1\nfinish"
    )
    given = program(text, "A")
    with pytest.raises(InstructionError, match="element 3 of uop"):
        run_program(given, dram_image(given, {}))
    given = program(text, "B")
    run_program(given, dram_image(given, {}))


def matmul(n, dtype="int8"):
    a = te.placeholder((n, n), dtype, name="a")
    b = te.placeholder((n, n), dtype, name="b")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute(
        (n, n),
        lambda i, j: te.sum(a[i, k].astype("int32") * b[k, j].astype("int32"), axis=k),
        name="c",
    )
    return te.decl_tensor_intrin(c.op, lambda ins, outs: "array")


def largest(n):
    a = te.placeholder((n, n), "int8", name="a")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n,), lambda i: te.max(a[i, k].astype("int32"), axis=k), name="m")
    return te.decl_tensor_intrin(c.op, lambda ins, outs: "array")


def test_an_accelerator_of_ones_own():
    own = Accelerator(
        "toy-functional",
        memories=[Memory("tile", (8, 8), "int8", 8), Memory("sum", (8, 8), "int32", 4),
                  Memory("row", (8,), "int32", 4)],
        engines=[Engine("load"), Engine("array"), Engine("store")],
        instructions=[
            copy("load", into="tile"), copy("store", out_of="sum", name="store sum"),
            copy("store", out_of="row", name="store row"),
            tensor_op("array", matmul(8), cycles=lambda n: n, name="mul",
                      memories=("sum", "tile", "tile")),
            tensor_op("array", largest(8), cycles=lambda n: n, name="top",
                      memories=("row", "tile")),
        ],
    )  # fmt: skip
    text = (
        "load tile y_size=1 x_size=4 push load->array\n"
        "mul reset=1 iter_out=1 iter_in=2 dst_factor_in=1 pop load->array\n"
        "mul iter_out=2 iter_in=2 dst_factor_in=1 src_factor_in=1 wgt=2 wgt_factor_out=1\n"
        "top reset=1 iter_out=1 iter_in=1\n"
        "top iter_out=1 iter_in=3 src_factor_in=1 push array->store\n"
        "store sum dram_base=4 y_size=1 x_size=2 pop array->store\n"
        "store row dram_base=64 y_size=1 x_size=1"
    )
    program = InstructionProgram(
        own, assemble(own, text),
        (DramBuffer("T", 0, (4, 8, 8), "int8"), DramBuffer("S", 1024, (2, 8, 8), "int32"),
         DramBuffer("R", 2048, (8,), "int32", "output")), dram_bytes=4096,
    )  # fmt: skip
    tiles = np.random.default_rng(1).integers(-128, 128, (4, 8, 8), dtype="int8")
    wide = tiles.astype("int64")
    for by_steps in (False, True):
        run = run_program(program, {"T": tiles}, by_steps=by_steps)
        expected = [wide[n] @ wide[2] + wide[n] @ wide[3] for n in range(2)]
        assert (run.array("S") == expected).all()
        assert (run.array("R") == wide[:3].max(axis=(0, 2))).all()
        assert run.counters["mul_counter"] == 4


def test_arrays_that_do_not_fit(program):
    given = program("finish")
    with pytest.raises(CallError, match="it has no such buffer"):
        run_program(given, {"A": np.zeros(4)})
    with pytest.raises(CallError, match="DRAM is no array of bytes"):
        run_program(given, np.zeros(4))


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"extra": 1}, "instruction 0 has not one value for each field"),
        ({"x_pad_0": -1}, "the value of x_pad_0 does not fit its field"),
        ({"x_size": 1 << 70}, "the value of x_size does not fit its field"),
        ({"x_size": 1.5}, "does not fit its field"),
    ],
)
def test_values_without_a_field(program, changed, problem):
    given = program("load inp y_size=1 x_size=1\nfinish")
    load, finish = given.steps
    names = operand_fields(given.accelerator, load.instruction)
    values = dict(zip(names, load.values, strict=True)) | changed
    wrong = replace(given, steps=(load._replace(values=tuple(values.values())), finish))
    for simulate in (time_program, lambda each: run_program(each, {})):
        with pytest.raises(InstructionError, match=problem):
            simulate(wrong)


@pytest.mark.parametrize(
    "changes",
    [
        {"micro_ops": [[0, 0, 0]]},
        {"micro_ops": np.zeros((2, 3))},
        {"micro_ops": np.zeros(3, int)},
        {"micro_op_address": -1},
        {"dram_bytes": 1.5},
        {"instruction_address": None},
    ],
)
def test_programs_that_cannot_be(program, changes):
    with pytest.raises(CallError, match="make a program of an accelerator"):
        replace(program("finish"), **changes)


def test_dram_that_is_too_large(program):
    with pytest.raises(CallError, match="does not fit into the memory"):
        run_program(replace(program("finish"), dram_bytes=1 << 60), {})
