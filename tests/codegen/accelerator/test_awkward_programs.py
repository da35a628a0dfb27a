"""Programs of accelerators that were wrong once, or refused without a reason."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.codegen.accelerator.tokens import Draft, ExactTokens
from dlcompiler.errors import ScheduleError, TargetError
from dlcompiler.simulate.accelerators import (
    InstructionError,
    InstructionProgram,
    Step,
    run_program,
)
from dlcompiler.target.accelerators import (
    Accelerator,
    Engine,
    Memory,
    TokenQueue,
    copy,
    tensor_op,
)
from dlcompiler.target.accelerators.vta import VtaConfig, vta
from tests.codegen.accelerator.schedules import GEMM, VTA, check, scoped
from tests.codegen.accelerator.test_own_accelerator import UNIT, filtered, run
from tests.codegen.accelerator.token_counts import most_tokens

ROWS = (4, 3, 1, 16)


def stored(last, inputs, on_chip):
    """Return a schedule that stores a tensor as int8, and its arguments."""
    out = te.compute(last.shape, lambda *i: last[i].astype("int8"), name="out")
    s = te.create_schedule(out.op)
    scoped(s, dict.fromkeys(on_chip, "acc"))
    return s, [*inputs, out]


def loaded(*names, shape=ROWS):
    """Return placeholders, and copies of them for a memory."""
    inputs = [te.placeholder(shape, "int32", name=name) for name in names]
    copies = [te.compute(shape, lambda *i, t=t: t[i], name=f"{t.name}_buf") for t in inputs]
    return inputs, copies


def stage(function, name):
    return te.compute(ROWS, function, name=name)


def once(a):
    return [stage(lambda *i: (a[i] >> 1) + a[i], "T")]


def turned(a):
    return [stage(lambda x, *i: a[(x, *i)] + a[(3 - x, *i)], "T")]


def again(a, b):
    total = stage(lambda *i: (a[i] + 1) + b[i], "T")
    return [total, stage(lambda *i: total[i] + a[i], "U")]


def shifted(a, b):
    amount = stage(lambda *i: te.maximum(te.minimum(b[i], 31), 0), "M")
    total = stage(lambda *i: a[i] >> amount[i], "T")
    return [amount, total, stage(lambda *i: total[i] + a[i], "U")]


@pytest.mark.parametrize("chain", [once, turned, again, shifted])
def test_an_operand_that_is_read_again_keeps_its_place(chain):
    inputs, copies = loaded(*"AB"[: chain.__code__.co_argcount])
    stages = chain(*copies)
    s, args = stored(stages[-1], inputs, [*copies, *stages])
    check(dlc.build(s, args, target=VTA), args)


def test_rows_that_are_no_whole_elements_apart_are_refused():
    a = te.placeholder((4, 24), "int32", name="A")
    left = te.compute((4, 16), lambda i, j: a[i, j], name="left")
    s, args = stored(left, [a], [left])
    with pytest.raises(ScheduleError, match="does not begin with a whole element"):
        dlc.build(s, args, target=VTA)


@pytest.mark.parametrize("log_bytes", [5, 6, 8])
def test_micro_ops_that_do_not_fit_together_are_loaded_one_by_one(log_bytes):
    machine = vta("vta-few", VtaConfig(LOG_UOP_BUFF_SIZE=log_bytes))
    (a,), (a_buf,) = loaded("A", shape=(6, 5, 4, 1, 16))
    shape = (3, 5, 2, 1, 16)
    t = te.compute(
        shape,
        lambda x, y, z, i, j: a_buf[x, y, z, i, j] + a_buf[x * 2, 4 - y, z + 1, i, j],
        name="T",
    )
    u = te.compute(
        shape, lambda x, y, z, i, j: t[x, y, z, i, j] + a_buf[x + 1, 4 - y, z, i, j], name="U"
    )
    out = te.compute(shape, lambda *i: u[i].astype("int8"), name="out")
    s = te.create_schedule(out.op)
    scoped(s, dict.fromkeys((a_buf, t, u), "acc"), "vta-few")
    check(dlc.build(s, [a, out], target=machine.target), [a, out])


def test_indices_and_conditions_from_tensors_are_refused():
    places = te.placeholder((4,), "int32", name="places")
    a = te.placeholder((8, 1, 16), "int32", name="A")
    shape = (4, 1, 16)
    gathered = te.compute(shape, lambda x, i, j: a[places[x], i, j], name="gathered")
    masked = te.compute(
        shape, lambda x, i, j: te.if_then_else(places[x] > 0, a[x, i, j], 0), name="masked"
    )
    for on_chip in (gathered, masked):
        s, args = stored(on_chip, [places, a], [on_chip])
        with pytest.raises(ScheduleError, match="depends on the contents of a tensor"):
            dlc.build(s, args, target=VTA)


@pytest.mark.parametrize("dtype", ["float32", "int16", "uint32"])
def test_a_stage_has_the_dtype_of_its_memory(dtype):
    t = te.compute((4, 1, 16), lambda *i: te.const(2, dtype), name="T")
    s, args = stored(t, [], [t])
    with pytest.raises(TargetError, match="T has another dtype than the memory acc"):
        dlc.build(s, args, target=VTA)


@pytest.mark.parametrize("attached", [False, True])
def test_a_product_without_an_outer_reduction_begins_at_zero(attached):
    (a,), _ = [te.placeholder((4, 1, 16), "int8", name="A")], None
    w = te.placeholder((1, 16, 16), "int8", name="W")
    inp = te.compute(a.shape, lambda *i: a[i], name="inp")
    wgt = te.compute(w.shape, lambda *i: w[i], name="wgt")
    k = te.reduce_axis((0, 16), "k")

    def element(x, i, j):
        return te.sum(inp[x, i, k].astype("int32") * wgt[0, j, k].astype("int32"), axis=k)

    sums = te.compute((4, 1, 16), element, name="sums")
    out = te.compute(sums.shape, lambda *i: sums[i].astype("int8"), name="out")
    s = te.create_schedule(out.op)
    scoped(s, {inp: "inp", wgt: "wgt", sums: "acc"})
    s[sums].tensorize(sums.op.axis[1], te.tensor_intrin(GEMM))
    if attached:
        for tensor in (sums, inp):
            s[tensor].compute_at(s[out], out.op.axis[0])
    check(dlc.build(s, [a, w, out], target=VTA), [a, w, out])


def test_rows_too_far_apart_for_one_copy_are_copied_one_by_one():
    a = te.placeholder((3, 70_000, 1, 16), "int32", name="A")
    part = te.compute((3, 2, 1, 16), lambda *i: a[i], name="part")
    s, args = stored(part, [a], [part])
    check(dlc.build(s, args, target=VTA), args)


@pytest.mark.parametrize("reduction", [te.max, te.min, te.sum])
def test_pooling(reduction):
    (a,), (a_buf,) = loaded("A", shape=(4, 5, 1, 16))
    k = te.reduce_axis((0, 5), "k")
    pooled = te.compute((4, 1, 16), lambda x, i, j: reduction(a_buf[x, k, i, j], axis=k), name="T")
    s, args = stored(pooled, [a], [a_buf, pooled])
    s[pooled].reorder(k, *pooled.op.axis)
    check(dlc.build(s, args, target=VTA), args)


@pytest.mark.parametrize(
    "number", [32_767, 32_768, -32_769, 65_536, 123_456_789, 2**31 - 1, -(2**31), 2**31 - 32_769]
)
def test_large_constants(number):
    t = te.compute((2, 1, 16), lambda *i: te.const(number, "int32"), name="T")
    u = te.compute(t.shape, lambda *i: t[i] >> 8, name="U")
    v = te.compute(t.shape, lambda *i: u[i] >> 15, name="V")
    for last in (t, u, v):
        s, args = stored(last, [], [t, u, v] if last is v else [t, u] if last is u else [t])
        check(dlc.build(s, args, target=VTA), args, orders=1)


def test_a_reduction_of_what_is_computed_is_refused():
    (a,), (a_buf,) = loaded("A")
    k = te.reduce_axis((0, 3), "k")
    total = te.compute((4, 1, 16), lambda x, i, j: te.sum(a_buf[x, k, i, j] >> 1, axis=k), name="T")
    s, args = stored(total, [a], [a_buf, total])
    s[total].reorder(k, *total.op.axis)
    with pytest.raises(ScheduleError, match="after an instruction has written it"):
        dlc.build(s, args, target=VTA)


def test_padding_stays_inside_its_buffer():
    """The last of the loads of 5 rows has 2: zeros in place of the others have no place."""
    rows = 2047
    a = te.placeholder((rows, 1, 16), "int8", name="A")
    w = te.placeholder((1, 16, 16), "int8", name="W")
    inp = te.compute(a.shape, lambda *i: a[i], name="inp")
    wgt = te.compute(w.shape, lambda *i: w[i], name="wgt")
    k = te.reduce_axis((0, 16), "k")

    def element(x, i, j):
        return te.sum(inp[x, i, k].astype("int32") * wgt[0, j, k].astype("int32"), axis=k)

    sums = te.compute(a.shape, element, name="sums")
    out = te.compute(sums.shape, lambda *i: sums[i].astype("int8"), name="out")
    s = te.create_schedule(out.op)
    scoped(s, {inp: "inp", wgt: "wgt", sums: "acc"})
    s[sums].tensorize(sums.op.axis[1], te.tensor_intrin(GEMM))
    s[inp].split(inp.op.axis[0], 5)
    check(dlc.build(s, [a, w, out], target=VTA), [a, w, out], orders=0)


def line():
    """Return an accelerator of four engines in a line, and the intrinsics of the inner two."""
    a, b = (te.placeholder((4,), "float32", name=name) for name in "ab")
    square = te.compute((4,), lambda i: a[i] * a[i], name="square")
    double = te.compute((4,), lambda i: b[i] + b[i], name="double")
    intrinsics = [
        te.decl_tensor_intrin(t.op, lambda ins, outs, t=t: t.op.name, f"line_{t.op.name}")
        for t in (square, double)
    ]

    def made(order):
        return Accelerator(
            "line",
            memories=[Memory(name, (4,), "float32", 16) for name in "xyz"],
            engines=[Engine(name, 4) for name in order],
            instructions=[
                copy("load", into="x"),
                tensor_op("one", intrinsics[0], cycles=lambda n: n, memories=("y", "x")),
                tensor_op("two", intrinsics[1], cycles=lambda n: n, memories=("z", "y")),
                copy("store", out_of="z"),
                copy("store", out_of="y"),
            ],
        )

    return made, intrinsics


@pytest.mark.parametrize(
    "order", list(itertools.permutations(("load", "one", "two", "store")))[::5]
)
def test_tokens_pass_through_engines_without_copies(order):
    made, (square, double) = line()
    machine = made(order)
    a = te.placeholder((5, 4), "float32", name="A")
    x = te.compute(a.shape, lambda *i: a[i], name="x")
    y = te.compute(a.shape, lambda *i: x[i] * x[i], name="y")
    z = te.compute(a.shape, lambda *i: y[i] + y[i], name="z")
    first = te.compute(a.shape, lambda *i: z[i], name="first")
    second = te.compute(a.shape, lambda *i: y[i], name="second")
    back = te.compute(a.shape, lambda n, i: first[4 - n, i], name="back")
    squared = te.compute(a.shape, lambda *i: back[i] * back[i], name="squared")
    third = te.compute(a.shape, lambda *i: squared[i], name="third")
    s = te.create_schedule([first.op, second.op, third.op])
    scoped(s, {x: "x", y: "y", z: "z", back: "x", squared: "y"}, "line")
    for tensor, intrinsic in ((y, square), (z, double), (squared, square)):
        s[tensor].tensorize(tensor.op.axis[1], intrinsic)
    kernel = dlc.build(s, [a, first, second, third], target=machine)
    values = np.random.default_rng(0).random((5, 4), "float32")
    for seed in (None, 0, 1, 2):
        results = [np.zeros_like(values) for _ in range(3)]
        kernel(values, *results, seed=seed)
        np.testing.assert_array_equal(results[1], values * values)
        np.testing.assert_array_equal(results[0], results[1] * 2)
        np.testing.assert_array_equal(results[2], results[0][::-1] ** 2)
    assert kernel.report().cycles > 0


def test_an_operand_whose_allocation_ends_before_the_result_is_read():
    (a,), (a_buf,) = loaded("A", shape=(1, 3, 1, 16))
    total = te.compute(a.shape, lambda *i: a_buf[i] + 1, name="T")
    s, args = stored(total, [a], [a_buf, total])
    s[a_buf].compute_at(s[total], total.op.axis[0])
    check(dlc.build(s, args, target=VTA), args)


@pytest.mark.parametrize("lowering", ["exact", "classic"])
def test_threads_that_share_elements_wait_for_each_other(lowering):
    """Under a condition that differs between threads, a stage has one place for all of them."""
    machine = vta(VTA, VtaConfig(lowering=lowering))
    (a,), (a_buf,) = loaded("A", shape=(5, 1, 16))
    s, args = stored(a_buf, [a], [a_buf])
    _, thread = s[args[-1]].split(args[-1].op.axis[0], 2)
    s[args[-1]].bind(thread, te.thread_axis("cthread"))
    s[a_buf].compute_at(s[args[-1]], thread)
    check(dlc.build(s, args, target=machine), args, orders=5)


def test_operands_in_dram_are_refused():
    a = te.placeholder(ROWS, "int32", name="A")
    total = te.compute(ROWS, lambda *i: a[i] + 1, name="T")
    s, args = stored(total, [a], [total])
    with pytest.raises(ScheduleError, match="its operand A is in another memory"):
        dlc.build(s, args, target=VTA)


def test_the_host_runs_virtual_threads_in_turn():
    (a,), (a_buf,) = loaded("A")
    back = te.compute(ROWS, lambda *i: a_buf[i].astype("int8"), name="back")
    out = te.compute(ROWS, lambda *i: back[i] + te.const(1, "int8"), name="out")
    s = te.create_schedule(out.op)
    scoped(s, {a_buf: "acc"})
    s[out].bind(out.op.axis[0], te.thread_axis("cthread"))
    kernel = dlc.build(s, [a, out], target=VTA)
    assert kernel.parts[-1] is None
    check(kernel, [a, out])


def test_an_element_that_is_one_object_in_an_expression_twice():
    (a, b), (a_buf, b_buf) = loaded("A", "B")

    def value(*index):
        element = a_buf[index]
        return (b_buf[index] + element) + element

    total = te.compute(ROWS, value, name="T")
    s, args = stored(total, [a, b], [a_buf, b_buf, total])
    check(dlc.build(s, args, target=VTA), args)
    twice = te.compute(ROWS, lambda *i: (lambda x: (x >> 1) + x)(a_buf[i]), name="twice")
    s, args = stored(twice, [a], [a_buf, twice])
    check(dlc.build(s, args, target=VTA), args)


def test_a_stage_in_dram_at_a_loop_of_virtual_threads():
    (a,), (a_buf,) = loaded("A")
    small = te.compute(ROWS, lambda *i: a_buf[i].astype("int8"), name="small")
    turned = te.compute(ROWS, lambda x, y, i, j: small[x, 2 - y, i, j], name="turned")
    w = te.placeholder((2, 16, 16), "int8", name="W")
    wgt = te.compute(w.shape, lambda *i: w[i], name="wgt")
    k = te.reduce_axis((0, 16), "k")

    def element(x, y, z, i, j):
        return te.sum(turned[x, y, i, k].astype("int32") * wgt[z, j, k].astype("int32"), axis=k)

    sums = te.compute((4, 3, 2, 1, 16), element, name="sums")
    out = te.compute(sums.shape, lambda *i: sums[i].astype("int8"), name="out")
    s = te.create_schedule(out.op)
    scoped(s, {a_buf: "acc", turned: "inp", wgt: "wgt", sums: "acc"})
    s[sums].tensorize(sums.op.axis[3], te.tensor_intrin(GEMM))
    _, thread = s[out].split(out.op.axis[0], 2)
    s[out].bind(thread, te.thread_axis("cthread"))
    for tensor in (sums, turned, small, a_buf):
        s[tensor].compute_at(s[out], thread)
    check(dlc.build(s, [a, w, out], target=VTA), [a, w, out], orders=5)


def ring(queues):
    """Return an accelerator whose loads, squares and stores are three engines; and a program."""
    a = te.placeholder((4,), "float32", name="a")
    square = te.compute((4,), lambda i: a[i] * a[i], name="square")
    intrinsic = te.decl_tensor_intrin(square.op, lambda ins, outs: "square", "ring_square")
    machine = Accelerator(
        "ring",
        memories=[Memory("x", (4,), "float32", 16), Memory("y", (4,), "float32", 16)],
        engines=[Engine("load", 4), Engine("square", 4), Engine("store", 4)],
        instructions=[
            copy("load", into="x"),
            tensor_op("square", intrinsic, cycles=lambda n: n, memories=("y", "x")),
            copy("store", out_of="y"),
        ],
        queues=[TokenQueue(*pair) for pair in queues],
    )
    source = te.placeholder((12, 4, 4), "float32", name="source")
    x = te.compute((6, 2, 4), lambda i, j, k: source[i * 2, j * 2, k], name="x")
    y = te.compute(x.shape, lambda *i: x[i] * x[i], name="y")
    out = te.compute(x.shape, lambda *i: y[i], name="out")
    s = te.create_schedule(out.op)
    scoped(s, {x: "x", y: "y"}, "ring")
    s[y].tensorize(y.op.axis[2], intrinsic)
    s[y].compute_at(s[out], out.op.axis[0])
    return machine, s, [source, out]


def test_an_instruction_pops_a_queue_once():
    """A square waits for a load, and by way of the load engine for a store."""
    machine, s, args = ring([("load", "square"), ("square", "store"), ("store", "load")])
    kernel = dlc.build(s, args, target=machine)
    steps = kernel.instructions.steps
    assert all(len({*step.pops}) == len(step.pops) for step in steps)
    values = np.random.default_rng(0).random((12, 4, 4), "float32")
    result = np.zeros((6, 2, 4), "float32")
    for seed in (None, 0, 1, 2):
        kernel(values, result, seed=seed)
        np.testing.assert_array_equal(result, values[::2, ::2] ** 2)
    twice = steps[1]._replace(pops=("store->load", "store->load"))
    with pytest.raises(InstructionError, match="pops or pushes a token queue twice"):
        run_program(replace(kernel.instructions, steps=(steps[0], twice, *steps[2:])), {})


def test_engines_without_a_way_of_queues_are_refused():
    machine, s, args = ring([("load", "square"), ("square", "store")])
    with pytest.raises(TargetError, match="no token queues lead from"):
        dlc.build(s, args, target=machine)


def rows_of_products(rows):
    """Return the schedule of three products, each row by row of what many loads brought before."""
    a = te.placeholder((3, rows, 1, 16), "int8", name="A")
    w = te.placeholder((1, 16, 16), "int8", name="W")
    wgt = te.compute(w.shape, lambda *i: w[i], name="wgt")
    inp = te.compute(a.shape, lambda n, x, i, j: a[n, rows - 1 - x, i, j], name="inp")
    k = te.reduce_axis((0, 16), "k")

    def element(n, x, i, j):
        return te.sum(wgt[0, j, k].astype("int32") * inp[n, x, i, k].astype("int32"), axis=k)

    sums = te.compute(a.shape, element, name="sums")
    out = te.compute(sums.shape, lambda *i: sums[i].astype("int8"), name="out")
    s = te.create_schedule(out.op)
    scoped(s, {inp: "inp", wgt: "wgt", sums: "acc"})
    s[sums].tensorize(sums.op.axis[2], te.tensor_intrin(GEMM))
    s[sums].compute_at(s[out], out.op.axis[1])
    s[inp].compute_at(s[out], out.op.axis[0])
    s[inp].double_buffer()
    return s, [a, w, out]


@pytest.mark.parametrize("depth", [2, 5])
def test_token_queues_never_overflow(depth):
    """Loads may run ahead of all products: no more tokens than the queue to them can hold."""
    queues = [replace(queue, depth=depth) for queue in vta(VTA).queues]
    s, args = rows_of_products(depth + 5)
    kernel = dlc.build(s, args, target=vta(VTA).with_(queues=queues))
    check(kernel, args, orders=1)
    assert most_tokens(kernel.instructions)["load->compute"] == depth
    assert kernel.report().cycles > 0


def test_micro_ops_that_were_overwritten_are_loaded_again():
    """The memory holds one list: that of a row, which the third product needs again."""
    s, args = rows_of_products(3)
    kernel = dlc.build(s, args, target=vta(VTA, VtaConfig(LOG_UOP_BUFF_SIZE=3)))
    check(kernel, args, orders=1)


def test_rows_of_an_aligned_buffer_lie_apart():
    inputs, copies = loaded("A", "B")
    total = stage(lambda *i: copies[0][i] + copies[1][i], "T")
    s, args = stored(total, inputs, [*copies, total])
    for tensor in copies:
        s[tensor].storage_align(tensor.op.axis[0], 64, 16)
    check(dlc.build(s, args, target=VTA), args)


@pytest.mark.parametrize("depth", [1, 2])
def test_short_token_queues_between_two_engines(depth):
    queues = [TokenQueue("move", "math", depth=depth), TokenQueue("math", "move", depth=depth)]
    kernel = run(*filtered(threads=2), target=UNIT.with_(queues=queues))
    assert set(most_tokens(kernel.instructions).values()) == {depth}
    assert kernel.report().cycles > 0


@pytest.mark.parametrize("depth", [1, 2])
def test_an_engine_waits_until_its_queue_has_room(depth):
    """`move` loads elements that nobody overwrites; only the queue makes it wait for `math`."""
    queues = [TokenQueue("move", "math", depth=depth), TokenQueue("math", "move")]
    machine = UNIT.with_(queues=queues)
    move, math = (Step(machine.of(name)[0], ()) for name in ("move", "math"))
    tokens = ExactTokens(machine, {"vectors": 9}, lambda _: move)
    for element in range(9):
        place = (("vectors", slice(element, element + 1)),)
        tokens.add(Draft(move, writes=place))
        tokens.add(Draft(math, reads=place))
    program = InstructionProgram(machine, tuple(draft.finished() for draft in tokens.order))
    assert most_tokens(program)["move->math"] == depth


def test_a_queue_that_is_too_short_for_tokens_that_pass_through():
    """Engine `two` needs what `load` does, by way of `one`, which may not push a second token."""
    made, _ = line()
    queues = [TokenQueue("load", "one"), TokenQueue("one", "two", depth=1)]
    machine = made(("load", "one", "two", "store")).with_(queues=queues)
    load, one, two = (Step(machine.of(name)[0], ()) for name in ("load", "one", "two"))
    tokens = ExactTokens(machine, {"x": 2}, lambda _: one)
    tokens.add(Draft(load, writes=(("x", slice(0, 1)),)))
    tokens.add(Draft(one, writes=(("x", slice(1, 2)),)))
    tokens.add(Draft(two, reads=(("x", slice(1, 2)),)))
    with pytest.raises(TargetError, match="the token queue one->two is too short"):
        tokens.add(Draft(two, reads=(("x", slice(0, 1)),)))


def test_a_buffer_that_is_loaded_or_computed_is_stored():
    """A store reads results of computing only: what was loaded, beside computed zeros, too."""
    a = te.placeholder((1, 5, 1, 16), "int32", name="A")

    def padded(x, *rest):
        return te.if_then_else(x >= 1, a[(x - 1, *rest)], te.const(0, "int32"))

    pad = te.compute((2, *a.shape[1:]), padded, name="pad")
    s, args = stored(pad, [a], [pad])
    x, y, *_ = s[args[-1]].op.axis
    s[args[-1]].reorder(y, x)
    s[pad].compute_at(s[args[-1]], x)
    s[pad].double_buffer()
    check(dlc.build(s, args, target=VTA), args)
