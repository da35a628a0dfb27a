"""Programs in TVM's manner take the cycles of TVM's own programs, in both profiles.

**Source:** A: pull request 3347 of apache/tvm, on the RTL of 2019. B: the same instructions on the
RTL of 2021, measured; `docs/VTA.md` says how.
"""

import pytest

from dlcompiler.errors import TargetError
from tests.codegen.accelerator import vta_schedules as cases


@pytest.fixture(scope="module")
def classic():
    return cases.machine(profile="A", lowering="classic")


def _names(kernel):
    return [step.instruction.name for step in kernel.instructions.steps]


PUBLISHED = {
    "load and store": (cases.save_load_out, (), 619, 528),
    "shl by a number": (cases.alu_immediate, ("shl", 3), 1067, 864),
    "max with a number": (cases.alu_immediate, ("max", 5), 1067, 864),
    "add a number": (cases.alu_immediate, ("add", 7), 1067, 864),
    "shr by a number": (cases.alu_immediate, ("shr", 2), 1067, 864),
    "max of tensors": (cases.alu_register, ("max",), 1654, 1465),
    "add tensors": (cases.alu_register, ("add",), 1654, 1465),
    "shift and scale": (cases.shift_and_scale, (), 386, 338),
    "matrix product": (cases.gemm, (), 648, 521),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_count(name):
    make, arguments, *cycles = PUBLISHED[name]
    for profile, expected in zip("AB", cycles, strict=True):
        machine = cases.machine(profile=profile, lowering="classic")
        case = make(machine, *arguments)
        kernel = case.build(machine)
        case.check(kernel, seed=1)
        assert kernel.report().cycles == expected


def test_exact_lowering_is_never_slower(classic):
    exact = cases.machine(profile="A")
    for make, arguments, cycles, _ in PUBLISHED.values():
        assert make(exact, *arguments).build(exact).report().cycles <= cycles


def test_each_statement_has_its_own_micro_ops(classic):
    names = _names(cases.gemm(classic).build(classic))
    # Reset, product, three operations; and a copy of nothing before the end.
    assert names.count("load uop") == 5 + 1
    shared = _names(cases.gemm(cases.machine()).build(cases.machine()))
    assert shared.count("load uop") < names.count("load uop")


def test_loads_wait_for_the_reset(classic):
    steps = cases.gemm(classic).build(classic).instructions.steps
    names = [step.instruction.name for step in steps]
    reset = names.index("gemm")
    first_load = names.index("load inp")
    assert first_load > reset
    waits = [s for s in steps if s.instruction.engine == "load" and "compute->load" in s.pops]
    assert len(waits) == 1
    assert waits[0] is steps[first_load]


def test_an_idle_engine_sends_its_last_token(classic):
    steps = cases.save_load_out(classic).build(classic).instructions.steps
    idle, last, finish = steps[-3:]
    assert idle.instruction.engine == "load"
    assert idle.pushes == ("load->compute",)
    assert set(last.pops) == {"load->compute", "store->compute"}
    assert (finish.pops, finish.pushes) == ((), ())


@pytest.mark.parametrize("lowering", ["exact", "classic"])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_virtual_threads_in_any_order_of_engines(lowering, threads):
    accelerator = cases.machine(profile="A", lowering=lowering)
    case = cases.gemm(accelerator, 3, 3, 8, threads=threads)
    kernel = case.build(accelerator)
    for seed in range(6):
        case.check(kernel, seed=seed)


def test_two_virtual_threads_overlap(classic):
    one, two = (
        cases.gemm(classic, 4, 8, 16, threads=threads).build(classic).report() for threads in (1, 2)
    )
    assert two.cycles < one.cycles


def test_an_unknown_lowering_is_refused():
    with pytest.raises(TargetError, match="no such lowering"):
        cases.machine(lowering="fast")
