"""An accelerator as a user describes it, used from the schedule to the timeline; and mistakes."""

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.errors import ScheduleError, TargetError
from dlcompiler.simulate.accelerators import InstructionError
from dlcompiler.target import Accelerator, Engine, Memory, TokenQueue, copy, tensor_op

SAMPLES, TAPS = 64, 9


def product_of_vectors(name="madd", operation=lambda a, b: a * b):
    x, y = (te.placeholder((1, 16), "int32", name=each) for each in "xy")
    k = te.reduce_axis((0, 1), "k")
    total = te.compute((16,), lambda i: te.sum(operation(x[k, i], y[k, i]), axis=k), name="total")
    return te.decl_tensor_intrin(total.op, lambda _ins, _outs: (name,) * 3, name)


MADD = product_of_vectors()


def move(cycles=lambda n: 8 + 4 * n):
    ends = {"into": "vectors"}, {"out_of": "vectors"}
    return [copy("move", cycles=cycles, **end) for end in ends]


def described(**changes):
    """Return the vector unit of the notebook, with some parts changed."""
    parts = {
        "name": "unit",
        "memories": [Memory("vectors", shape=(16,), dtype="int32", depth=64)],
        "engines": [Engine("move", queue=8), Engine("math", queue=8)],
        "instructions": [*move(), tensor_op("math", MADD, cycles=lambda n: 4 + n)],
    }
    return Accelerator(**{**parts, **changes})


UNIT = described()


def filtered(
    tile=8, threads=1, *, intrinsic=MADD, element=lambda x, h: x * h, scopes=("unit.vectors",) * 3
):
    """Return the schedule of a filter of nine taps on 16 channels, and its arguments."""
    X = te.placeholder((SAMPLES + TAPS - 1, 16), "int32", name="X")
    H = te.placeholder((TAPS, 16), "int32", name="H")
    X_chip = te.compute(X.shape, lambda *i: X[i], name="X_chip")
    H_chip = te.compute(H.shape, lambda *i: H[i], name="H_chip")
    k = te.reduce_axis((0, TAPS), "k")
    sums = te.compute(
        (SAMPLES, 16),
        lambda t, c: te.sum(element(X_chip[t + k, c], H_chip[k, c]), axis=k),
        name="sums",
    )
    Y = te.compute(sums.shape, lambda *i: sums[i], name="Y")
    s = te.create_schedule(Y.op)
    for stage, scope in zip((X_chip, H_chip, sums), scopes, strict=True):
        s[stage].set_scope(scope)
    outer, _ = s[Y].split(Y.op.axis[0], tile)
    if threads > 1:
        _, outer = s[Y].split(outer, threads)
        s[Y].bind(outer, te.thread_axis("cthread"))
    s[X_chip].compute_at(s[Y], outer)
    s[sums].compute_at(s[Y], outer)
    tap, one = s[sums].split(sums.op.reduce_axis[0], 1)
    s[sums].reorder(tap, sums.op.axis[0], one, sums.op.axis[1])
    if intrinsic is not None:
        s[sums].tensorize(one, intrinsic)
    return s, [X, H, Y]


def run(schedule, args, target=UNIT):
    """Build a filter, and compare what it computes in several orders with `te.evaluate`."""
    kernel = dlc.build(schedule, args, target=target, name="fir")
    random = np.random.default_rng(0)
    x, h = (random.integers(-99, 99, t.static_shape, dtype="int32") for t in args[:2])
    expected = te.evaluate(args[2], dict(zip(args[:2], (x, h), strict=True)))
    for seed in (None, 0, 1):
        kernel(x, h, y := np.empty((SAMPLES, 16), "int32"), seed=seed)
        assert np.array_equal(y, expected)
    return kernel


def refusal(error, make):
    with pytest.raises(error) as caught:
        make()
    return str(caught.value)


def test_from_the_schedule_to_the_timeline():
    one, two = run(*filtered()), run(*filtered(threads=2))
    assert one.report().cycles > two.report().cycles
    assert sum(two.report().busy.values()) > two.report().cycles, "the engines overlap"
    assert str(one.report()).startswith(f"{one.report().cycles:,} cycles (simulated): move busy ")
    assert repr(one) == "AcceleratorKernel(fir for unit: 33 instructions; run by simulation)"
    timeline = one.timeline(two, names=["one", "two"])
    assert "move" in timeline.table
    assert "<svg" in timeline.svg
    assert dlc.verify(*filtered(), target=UNIT).oracles == ("numpy", "interpreter")


def test_cycles_are_those_of_the_description():
    kernel = run(*filtered(tile=SAMPLES), target=described(memories=[_memory(256)]))
    # 9 and 72 vectors are loaded, then 64 results are reset and each gets nine products.
    load, last = 8 + 4 * 9 + 8 + 4 * 72, 4 + 9 * 64
    store = 8 + 4 * 64
    assert kernel.report().busy == {"move": load + store, "math": 4 + 64 + last}


def _memory(depth):
    return Memory("vectors", shape=(16,), dtype="int32", depth=depth)


def test_another_depth_gets_fields_and_queues_of_its_own():
    larger = UNIT.with_(memories=[_memory(128)])
    assert larger.instruction("load vectors").field("sram_base").bits == 7
    run(*filtered(16, 2), target=larger)
    three = UNIT.with_(
        engines=[Engine("move"), Engine("math"), Engine("store")],
        instructions=[move()[0], copy("store", out_of="vectors"), UNIT.instruction("madd")],
    )
    assert len(three.queues) == 6
    run(*filtered(), target=three)


def test_a_reduction_inside_one_call_begins_at_zero():
    a, b = te.placeholder((16, 16), "int32", name="a"), te.placeholder((16,), "int32", name="b")
    k = te.reduce_axis((0, 16), "k")
    c = te.compute((16,), lambda i: te.sum(a[i, k] * b[k], axis=k), name="c")
    times = te.decl_tensor_intrin(c.op, lambda _ins, _outs: "times", "times")
    machine = Accelerator(
        "whole", [Memory("matrix", (16, 16), "int32", 4), Memory("vector", (16,), "int32", 8)],
        [Engine("move"), Engine("math")],
        [copy("move", into="matrix"), copy("move", into="vector"), copy("move", out_of="vector"),
         tensor_op("math", times, cycles=lambda n: n)],
    )  # fmt: skip
    A, B = te.placeholder((4, 16, 16), "int32", name="A"), te.placeholder((16,), "int32", name="B")
    A_chip = te.compute(A.shape, lambda *i: A[i], name="A_chip")
    B_chip = te.compute(B.shape, lambda *i: B[i], name="B_chip")
    k = te.reduce_axis((0, 16), "k")
    sums = te.compute(
        (4, 16), lambda o, i: te.sum(A_chip[o, i, k] * B_chip[k], axis=k), name="sums"
    )
    Y = te.compute(sums.shape, lambda *i: sums[i], name="Y")
    s = te.create_schedule(Y.op)
    for stage, memory in ((A_chip, "matrix"), (B_chip, "vector"), (sums, "vector")):
        s[stage].set_scope(f"whole.{memory}")
    for stage in (A_chip, sums):
        s[stage].compute_at(s[Y], Y.op.axis[0])
    s[sums].tensorize(sums.op.axis[1], times)
    kernel = dlc.build(s, [A, B, Y], target=machine)
    x, v = np.arange(1024, dtype="int32").reshape(4, 16, 16), np.arange(16, dtype="int32")
    kernel(x, v, y := np.empty((4, 16), "int32"))
    assert np.array_equal(y, x @ v)


# -- mistakes --------------------------------------------------------------------------------------


def test_an_intrinsic_of_the_same_name_that_computes_something_else_is_refused():
    """The instruction would multiply where the program adds."""
    adds = product_of_vectors(operation=lambda a, b: a + b)
    text = refusal(
        ScheduleError, lambda: run(*filtered(intrinsic=adds, element=lambda x, h: x + h))
    )
    assert text.startswith("compute sums by madd: unit has no instruction for this intrinsic\n")
    assert "because   its instruction madd computes another intrinsic of this name" in text


def test_the_same_declaration_made_again_is_the_same_intrinsic():
    run(*filtered(intrinsic=product_of_vectors()))


def test_an_intrinsic_that_nothing_computes():
    other = product_of_vectors("other")
    text = refusal(ScheduleError, lambda: run(*filtered(intrinsic=other)))
    assert text == (
        "compute sums by other: unit has no instruction for this intrinsic\n"
        f"  got       {other.id}\n"
        f"  expected  {MADD.id}\n"
        "  hint      tensor_op(engine, intrinsic, …) describes an instruction that computes an "
        "intrinsic"
    )


def test_a_stage_that_nothing_computes():
    text = refusal(ScheduleError, lambda: run(*filtered(intrinsic=None)))
    assert text.startswith("build fir_kernel0 for unit: no instruction computes sums\n")
    assert "hint      s[sums].tensorize(axis, intrinsic), that of madd" in text


@pytest.mark.parametrize(
    ("scopes", "operand"),
    [
        (("unit.vectors", "global", "unit.vectors"), "wgt, H_chip,"),
        (("unit.vectors", "unit.vectors", "global"), "dst, sums,"),
        (("global",) * 3, "dst, sums,"),
    ],
)
def test_an_operand_in_the_wrong_memory(scopes, operand):
    name = operand.split()[1].rstrip(",")
    assert refusal(ScheduleError, lambda: run(*filtered(scopes=scopes))) == (
        f"compute sums by madd: its operand {operand} is in another memory\n"
        "  got       global\n"
        "  expected  unit.vectors\n"
        f"  hint      s[{name}].set_scope('unit.vectors')"
    )


def test_a_tile_that_is_too_large():
    assert refusal(TargetError, lambda: run(*filtered(32))) == (
        "build fir_kernel0 for unit: the memory vectors is too small\n"
        "  got       H_chip 9 + X_chip 40 + sums 32 elements\n"
        "  expected  at most 64 elements\n"
        "  because   an element is int32[16]\n"
        "  hint      choose smaller tiles, or attach a stage deeper"
    )


@pytest.mark.parametrize("scope", ["unit.vector", "vectors", "unit.Vectors"])
def test_a_scope_that_is_misspelled(scope):
    text = refusal(ScheduleError, lambda: filtered(scopes=(scope,) * 3))
    assert text.startswith("set_scope X_chip: no such memory scope\n")
    assert "unit.vectors" in text.splitlines()[-1]


@pytest.mark.parametrize(("kept", "expected"), [(0, "out_of=…"), (1, "into=…")])
def test_a_copy_that_nothing_does(kept, expected):
    unit = UNIT.with_(instructions=[move()[kept], UNIT.instruction("madd")])
    text = refusal(ScheduleError, lambda: run(*filtered(), target=unit))
    assert text.endswith(f"expected  an instruction copy(engine, {expected})")


def test_a_queue_that_is_missing():
    unit = UNIT.with_(queues=[TokenQueue("move", "math")])
    assert refusal(TargetError, lambda: run(*filtered(), target=unit)) == (
        "insert tokens: no token queues lead from math to move\n"
        "  got       move->math\n"
        "  because   an instruction of move needs what one of math does\n"
        "  hint      TokenQueue('math', 'move'); without queues= there are queues between all "
        "engines of a memory"
    )


@pytest.mark.parametrize(
    ("cycles", "said"),
    [
        (lambda n: 5 - n, "got       cycles(9) = -4\n  expected  a whole number of at least 1"),
        (lambda n: n / 4, "got       cycles(9) = 2.25"),
        (lambda n: float("nan"), "got       cycles(9) = nan"),
        (lambda n: None, "got       cycles(9) = None"),
        (lambda n: 1e300, "got       cycles(9) = 1e+300"),
        (lambda n: 10**90, "got       cycles(9) = 1000"),
        (lambda n: n // 0, "because   ZeroDivisionError"),
        (lambda: 5, "because   TypeError"),
    ],
)
def test_cycles_that_are_no_number(cycles, said):
    unit = described(instructions=[*move(cycles), UNIT.instruction("madd")])
    kernel = run(*filtered(), target=unit)
    text = refusal(InstructionError, kernel.report)
    assert "load vectors" in text.splitlines()[0]
    assert said in text
