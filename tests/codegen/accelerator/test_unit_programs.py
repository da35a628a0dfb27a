"""What VTA's own unit tests compute, from schedules: loads, products, elementwise operations.

Each program runs in some random orders of its engines; the simulator reports races, reads of what
was never written and faults of the hardware that it knows.
"""

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.errors import ScheduleError
from dlcompiler.simulate.accelerators.errors import InstructionError
from tests.codegen.accelerator import vta_schedules as cases

MACHINES = [("A", "exact"), ("A", "classic"), ("B", "exact"), ("B", "classic")]


@pytest.fixture(params=MACHINES, ids=["-".join(each) for each in MACHINES])
def machine(request):
    profile, lowering = request.param
    return cases.machine(profile=profile, lowering=lowering)


def _check(case, machine, seeds=2):
    kernel = case.build(machine)
    for seed in range(seeds):
        case.check(kernel, seed=seed)
    return kernel


def _names(kernel):
    return [step.instruction.name for step in kernel.instructions.steps]


def test_save_and_load(machine):
    kernel = _check(cases.save_load_out(machine), machine)
    assert _names(kernel).count("store") == 1


PADS = {
    "top": ((2, 0), (0, 0)),
    "bottom": ((0, 0), (2, 0)),
    "left": ((0, 2), (0, 0)),
    "right": ((0, 0), (0, 2)),
    "all": ((1, 2), (3, 1)),
    "some": ((0, 1), (1, 3)),
}


@pytest.mark.parametrize("pads", PADS)
def test_padded_load(machine, pads):
    kernel = _check(cases.padded_load(machine, (5, 6), *PADS[pads]), machine)
    assert _names(kernel).count("load acc") == 1


def test_padded_load_of_the_published_shape():
    machine = cases.machine()
    _check(cases.padded_load(machine, (21, 20), *PADS["some"]), machine)


@pytest.mark.parametrize("pads", [((16, 0), (0, 0)), ((3, 47), (1, 2)), ((0, 1), (33, 0))], ids=str)
def test_padding_beyond_the_field_is_several_loads(pads):
    machine = cases.machine()
    _check(cases.padded_load(machine, (5, 6), *pads), machine)


@pytest.mark.campaign
@pytest.mark.parametrize("operation", ["shl", "shr", "add", "max", "min"])
@pytest.mark.parametrize("number", [0, 1, 3, -5])
def test_operation_with_a_number(machine, operation, number):
    if operation in ("shl", "shr") and number < 0:
        return
    if (machine.profile, operation) in (("A", "min"), ("A", "max")) and number < 0:
        pytest.skip("the RTL of 2019 takes a negative bound as a large one")
    _check(cases.alu_immediate(machine, operation, number), machine)


@pytest.mark.parametrize("operation", ["shr", "add", "max", "min"])
def test_operation_of_tensors(machine, operation):
    _check(cases.alu_register(machine, operation), machine)


@pytest.mark.parametrize("number", [32767, -32768])
def test_the_largest_numbers(number):
    machine = cases.machine()
    _check(cases.alu_immediate(machine, "add", number), machine)


def test_numbers_that_do_not_fit_are_refused():
    machine = cases.machine()
    with pytest.raises(ScheduleError, match="does not fit"):
        cases.alu_immediate(machine, "add", 32768).build(machine)
    with pytest.raises(ScheduleError, match="it shifts by"):
        cases.alu_immediate(machine, "shl", 16).build(machine)


def test_relu(machine):
    kernel = _check(cases.relu(machine), machine)
    assert _names(kernel).count("alu") == 2


def test_shift_and_scale(machine):
    _check(cases.shift_and_scale(machine), machine)


@pytest.mark.parametrize("threads", [0, 1, 2])
def test_product(machine, threads):
    _check(cases.gemm(machine, threads=threads), machine)


@pytest.mark.parametrize("threads", [0, 2])
def test_product_over_several_blocks(machine, threads):
    _check(cases.gemm(machine, 2, 3, 4, threads=threads), machine)


def test_a_negative_bound_in_profile_a_is_found():
    machine = cases.machine(profile="A")
    case = cases.alu_immediate(machine, "max", -5)
    with pytest.raises(InstructionError, match="negative"):
        case.build(machine)(*case.arrays(), np.zeros((8, 8, 1, 16), "int8"))


def test_an_operand_in_dram_is_named():
    machine = cases.machine()
    x = te.placeholder((4, 1, 16), "int32", name="x")
    result = te.compute(x.static_shape, lambda *i: x(*i) + 1, "result")
    out = te.compute(x.static_shape, lambda *i: result(*i).astype("int8"), "out")
    s = te.create_schedule(out.op)
    s[result].set_scope(machine.scope_of("acc"))
    with pytest.raises(ScheduleError, match="its operand x is in another memory"):
        dlc.build(s, [x, out], machine.target)
    s.cache_read(x, machine.scope_of("acc"), [result])
    stored = np.zeros((4, 1, 16), "int8")
    dlc.build(s, [x, out], machine.target)(np.zeros((4, 1, 16), "int32"), stored)
    assert (stored == 1).all()


# -- the layers of VTA's benchmarks, on smaller images and a quarter of the channels ---------------

LAYERS = {
    "C2": (1, 1, 3, 1), "C3": (1, 1, 1, 1), "C4": (1, 2, 3, 2), "C5": (1, 2, 1, 2),
    "C6": (2, 2, 3, 1), "C7": (2, 4, 3, 2), "C8": (2, 4, 1, 2), "C9": (4, 4, 3, 1),
    "C10": (4, 8, 3, 2), "C11": (4, 8, 1, 2),
}  # fmt: skip


@pytest.mark.campaign
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("layer", LAYERS)
def test_convolution(layer, threads):
    filters = LAYERS[layer][1]
    if filters % threads:
        return
    for profile, lowering in (("B", "exact"), ("A", "classic")):
        machine = cases.machine(profile=profile, lowering=lowering)
        _check(cases.convolution(machine, LAYERS[layer], threads=threads), machine)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("blocks", [1, 2])
def test_group_convolution(blocks, stride):
    machine = cases.machine()
    layer = (2 * blocks, 2 * blocks, 3, stride)
    _check(cases.convolution(machine, layer, groups=2, size=7), machine)


@pytest.mark.parametrize(("rows", "threads"), [(128, 0), (12, 2)])
def test_dense_of_128(rows, threads):
    machine = cases.machine()
    kernel = _check(cases.gemm(machine, rows, 8, 8, threads=threads), machine, seeds=1)
    arrays = cases.gemm(machine, rows, 8, 8).arrays()
    executed = kernel.run(*arrays, np.zeros((rows, 8, 1, 16), "int8"))
    assert executed["gemm_counter"] == rows * 8 * 8
