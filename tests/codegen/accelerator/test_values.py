"""Programs of accelerators compute what their tensor expressions mean."""

import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.errors import ScheduleError, TargetError
from tests.codegen.accelerator.schedules import VTA, check, convolution, product, scoped


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("sizes", [(1, 4, 4), (3, 8, 5), (2, 6, 3)])
def test_products(sizes, threads):
    chain = (lambda x: x >> 5, lambda x: te.maximum(x, 0), lambda x: te.minimum(x, 127))
    s, args = product(*sizes, threads=threads, chain=chain)
    check(dlc.build(s, args, target=VTA), args)


@pytest.mark.parametrize(
    "parameters",
    [
        {"channels": 1, "size": 6, "filters": 1, "kernel": 3, "padding": 1},
        {"channels": 2, "size": 9, "filters": 3, "kernel": 3, "padding": 1, "threads": 2},
        {"channels": 1, "size": 11, "filters": 2, "kernel": 3, "stride": 2, "padding": 1},
        {"channels": 2, "size": 7, "filters": 2, "kernel": 1, "filter_tile": 2},
        {
            "channels": 1,
            "size": 13,
            "filters": 1,
            "kernel": 5,
            "padding": 2,
            "rows": 5,
            "columns": 7,
        },
        {"channels": 1, "size": 12, "filters": 4, "kernel": 3, "threads": 2, "filter_tile": 2},
    ],
    ids=str,
)
def test_convolutions(parameters):
    s, args = convolution(**parameters)
    check(dlc.build(s, args, target=VTA), args)


def test_virtual_threads_hide_latency():
    cycles = {}
    for threads in (1, 2):
        s, args = convolution(
            4, 14, 8, 3, padding=1, filter_tile=2, rows=7, columns=14, threads=threads
        )
        cycles[threads] = dlc.build(s, args, target=VTA).report().cycles
    assert cycles[2] < 0.95 * cycles[1]


def test_a_double_buffer_hides_latency():
    cycles = {}
    for is_double in (False, True):
        s, args = product(1, 8, 16, column_tile=8)
        if is_double:
            for stage in s.stages:
                if stage.name.endswith("_buf"):
                    stage.double_buffer()
        cycles[is_double] = dlc.build(s, args, target=VTA).report().cycles
    assert cycles[True] <= cycles[False]


def elementwise(function, *names):
    """Return a schedule of an elementwise function of int32 tensors in the accumulator."""
    inputs = [te.placeholder((4, 3, 1, 16), "int32", name=name) for name in names]
    buffers = [te.compute(t.shape, lambda *i, t=t: t[i], name=f"{t.name}_buf") for t in inputs]
    out = te.compute(inputs[0].shape, lambda *i: function(*(b[i] for b in buffers)), name="out")
    c = te.compute(out.shape, lambda *i: out[i].astype("int8"), name="C")
    s = te.create_schedule(c.op)
    scoped(s, dict.fromkeys((*buffers, out), "acc"))
    return s, [*inputs, c]


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (lambda a: a, "A"),
        (lambda a: a + 5, "A"),
        (lambda a: a - 7, "A"),
        (lambda a: (a << 3) >> 4, "A"),
        (lambda a: te.minimum(te.maximum(a, -128), 127), "A"),
        (lambda a, b: a + b, "AB"),
        (lambda a, b: te.maximum(b, a), "AB"),
        (lambda a, b: te.minimum(a + b, 100) + b, "AB"),
        (lambda a, b, c: a + b + c, "ABC"),
    ],
)
def test_chains_of_operations(function, names):
    s, args = elementwise(function, *names)
    check(dlc.build(s, args, target=VTA), args)


def test_a_bias_is_the_same_in_every_row():
    a = te.placeholder((3, 5, 1, 16), "int32", name="A")
    bias = te.placeholder((5, 1, 16), "int32", name="bias")
    a_buf = te.compute(a.shape, lambda *i: a[i], name="A_buf")
    bias_buf = te.compute(bias.shape, lambda *i: bias[i], name="bias_buf")
    total = te.compute(
        a.shape, lambda x, y, i, j: a_buf[x, y, i, j] + bias_buf[y, i, j], name="total"
    )
    c = te.compute(a.shape, lambda *i: total[i].astype("int8"), name="C")
    s = te.create_schedule(c.op)
    scoped(s, dict.fromkeys((a_buf, bias_buf, total), "acc"))
    args = [a, bias, c]
    check(dlc.build(s, args, target=VTA), args)


def test_stages_in_dram_are_computed_by_the_host():
    plain = te.placeholder((8, 32), "int8", name="plain")
    packed = te.compute((8, 2, 1, 16), lambda x, y, i, j: plain[x, y * 16 + j], name="packed")
    buffer = te.compute(packed.shape, lambda *i: packed[i].astype("int32"), name="wide")
    on_chip = te.compute(packed.shape, lambda *i: buffer[i], name="on_chip")
    shifted = te.compute(packed.shape, lambda *i: on_chip[i] >> 1, name="shifted")
    back = te.compute(packed.shape, lambda *i: shifted[i].astype("int8"), name="back")
    c = te.compute((8, 32), lambda x, y: back[x, y // 16, 0, y % 16], name="C")
    s = te.create_schedule(c.op)
    scoped(s, dict.fromkeys((on_chip, shifted), "acc"))
    kernel = dlc.build(s, [plain, c], target=VTA)
    assert [part is None for part in kernel.parts] == [True, False, True] or [
        part is None for part in kernel.parts
    ] == [True, True, False, True]
    check(kernel, [plain, c])


def test_a_memory_that_is_too_small_is_named():
    s, args = product(1, 64, 64, column_tile=64, inner_tile=64)
    with pytest.raises(TargetError, match="the memory wgt is too small") as caught:
        dlc.build(s, args, target=VTA)
    assert "W_buf 4096 elements" in str(caught.value)


def test_what_no_instruction_does_is_refused():
    s, args = elementwise(lambda a: a * 3, "A")
    with pytest.raises(ScheduleError, match="no operation mul"):
        dlc.build(s, args, target=VTA)
    s, args = elementwise(lambda a: a + 100_000, "A")
    with pytest.raises(ScheduleError, match="does not fit an instruction"):
        dlc.build(s, args, target=VTA)


def test_a_copy_of_parts_of_elements_is_refused():
    a = te.placeholder((4, 12), "int32", name="A")
    buffer = te.compute(a.shape, lambda *i: a[i], name="A_buf")
    c = te.compute(a.shape, lambda *i: buffer[i].astype("int8"), name="C")
    s = te.create_schedule(c.op)
    scoped(s, {buffer: "acc"})
    with pytest.raises(ScheduleError, match="do not cover whole elements"):
        dlc.build(s, [a, c], target=VTA)
