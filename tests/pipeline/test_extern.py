"""Kernels that call code from outside: built, called, stopped, verified."""

import threading
import traceback

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.errors import MeasurementError, ProgramError, ScheduleError, UserError
from dlcompiler.ir import Builder, call_packed, const
from dlcompiler.runtime import callbacks
from dlcompiler.runtime.registry import register_func, remove_global_func

SEEN = []


@register_func("test.kernel.scale", override=True)
def _scale(a, b, row, factor, is_first):
    SEEN.append((a.shape, a.flags.writeable, row, factor, is_first, threading.get_ident()))
    if factor < 0:
        raise ValueError(f"row {row}")
    b[...] = a * factor


@register_func("test.kernel.copy", override=True)
def _copy(a, b):
    b[...] = a


def _rows(shape=(6, 5), dtype="float32", kind="serial", factor=2.5, loop=None):
    A = te.placeholder(shape, dtype, name="A")

    def code(ins, outs):
        ib = Builder()
        with ib.for_range(0, loop or shape[0], name="i", kind=kind) as i:
            a = ins[0].region((i, 0), (1, shape[1]), "r")
            b = outs[0].region((i, 0), (1, shape[1]), "w")
            first = i < 1
            ib.emit(call_packed("test.kernel.scale", a, b, i, const(factor, "float32"), first))
        return ib.get()

    return A, te.extern(shape, [A], code, name="B")


@pytest.mark.campaign
@pytest.mark.parametrize("kind", ["serial", "parallel", "vectorize", "unroll"])
@pytest.mark.parametrize("shape", [(6, 5), (1, 1), (13, 3)])
def test_a_call_for_each_row(kind, shape):
    A, B = _rows(shape, kind=kind)
    s = te.create_schedule(B.op)
    a, b = np.random.default_rng(1).random(shape, "float32"), np.zeros(shape, "float32")
    SEEN.clear()
    dlc.build(s, [A, B])(a, b)
    np.testing.assert_array_equal(b, a * np.float32(2.5))
    assert sorted(seen[2] for seen in SEEN) == list(range(shape[0]))
    assert {seen[:2] + seen[3:4] for seen in SEEN} == {((1, shape[1]), False, 2.5)}
    assert [seen[4] for seen in sorted(SEEN)] == [True] + [False] * (shape[0] - 1)
    assert dlc.verify(s, [A, B]).oracles == ("numpy", "interpreter")


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "bfloat16", "float64"])
def test_dtypes(dtype):
    A = te.placeholder((3, 7), dtype, name="A")
    B = te.extern((3, 7), [A], lambda i, o: call_packed("test.kernel.copy", *i, *o), name="B")
    assert dlc.verify(te.create_schedule(B.op), [A, B]).worst == 0


@pytest.mark.parametrize("size", [0, 1, 11])
def test_symbolic_shapes(size):
    n = te.var("n")
    A = te.placeholder((n, 3), name="A")
    P = te.compute((n, 3), lambda i, j: A[i, j] * 2.0, name="P")
    E = te.extern((n, 3), [P], lambda i, o: call_packed("test.kernel.copy", *i, *o), name="E")
    D = te.compute((n, 3), lambda i, j: E[i, j] + 1.0, name="D")
    s = te.create_schedule(D.op)
    a, d = np.ones((size, 3), "float32"), np.empty((size, 3), "float32")
    dlc.build(s, [A, D])(a, d)
    assert np.array_equal(d, a * 2 + 1)
    dlc.verify(s, [A, D])


def test_the_program():
    A, B = _rows(kind="parallel")
    func = dlc.lower(te.create_schedule(B.op), [A, B])
    assert str(func).splitlines() == [
        "def main(A: float32[6, 5], B: float32[6, 5]):",
        "    for i in parallel(6):",
        "        call test.kernel.scale(A[i, 0 : +5] (r), B[i, 0 : +5] (w), i, 2.5, i < 1)",
    ]
    assert [str(ref) for ref in func.body.body.origin] == ["B"]


@pytest.mark.parametrize("kind", ["serial", "parallel"])
def test_an_exception_stops_the_kernel_and_arrives(kind):
    A, B = _rows(kind=kind, factor=-1.0)
    C = te.compute(B.shape, lambda i, j: B[i, j], name="C")
    kernel = dlc.build(te.create_schedule(C.op), [A, C])
    c = np.full((6, 5), 7, "float32")
    for _ in range(20):
        with pytest.raises(ValueError, match=r"^row \d") as caught:
            kernel(np.zeros((6, 5), "float32"), c)
    assert "_scale" in [frame.name for frame in traceback.extract_tb(caught.tb)]
    assert caught.value.__notes__ == ["raised by code from outside, in a call of main"]
    assert np.all(c == 7)
    assert not callbacks._raised


def test_calls_at_the_same_time_keep_their_exceptions():
    A, B = _rows(kind="parallel", factor=-1.0)
    good, bad = (dlc.build(te.create_schedule(t.op), [p, t]) for p, t in (_rows(), (A, B)))
    wrong = []

    def call(number):
        a, b = np.full((6, 5), number, "float32"), np.zeros((6, 5), "float32")
        for _ in range(50):
            try:
                (bad if number % 2 else good)(a, b)
            except ValueError:
                wrong.extend([] if number % 2 else [number])
            else:
                wrong.extend([number] if number % 2 else [])

    threads = [threading.Thread(target=call, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert not callbacks._raised


def test_an_interrupt_arrives_too():
    @register_func("test.kernel.interrupt", override=True)
    def interrupt(*_):
        raise KeyboardInterrupt

    A = te.placeholder((4,), name="A")
    B = te.extern((4,), [A], lambda i, o: call_packed("test.kernel.interrupt", *i, *o))
    kernel = dlc.build(te.create_schedule(B.op), [A, B])
    with pytest.raises(KeyboardInterrupt):
        kernel(np.zeros(4, "float32"), np.zeros(4, "float32"))


def test_an_input_cannot_be_written():
    @register_func("test.kernel.spoil", override=True)
    def spoil(a, b):
        a[...] = 0

    A = te.placeholder((4,), name="A")
    B = te.extern((4,), [A], lambda i, o: call_packed("test.kernel.spoil", *i, *o))
    kernel = dlc.build(te.create_schedule(B.op), [A, B])
    with pytest.raises(ValueError, match="read-only"):
        kernel(np.ones(4, "float32"), np.zeros(4, "float32"))


def test_a_function_must_be_registered():
    A = te.placeholder((4,), name="A")
    B = te.extern((4,), [A], lambda i, o: call_packed("test.kernel.late", *i, *o), name="B")
    s = te.create_schedule(B.op)
    with pytest.raises(UserError, match=r"call test.kernel.late: no function of that name"):
        dlc.build(s, [A, B])
    register_func("test.kernel.late", lambda a, b: np.copyto(b, a))
    kernel = dlc.build(s, [A, B])
    a, b = np.ones(4, "float32"), np.zeros(4, "float32")
    kernel(a, b)
    assert np.array_equal(a, b)
    remove_global_func("test.kernel.late")
    with pytest.raises(UserError, match="no function of that name is registered in this process"):
        kernel(a, b)


def test_the_same_function_twice_in_one_kernel():
    A = te.placeholder((2, 3), name="A")
    B = te.extern((2, 3), [A], lambda i, o: call_packed("test.kernel.copy", *i, *o), name="B")
    C = te.extern((2, 3), [B], lambda i, o: call_packed("test.kernel.copy", *i, *o), name="C")
    assert dlc.verify(te.create_schedule(C.op), [A, C]).worst == 0


def test_shapes_that_are_awkward_and_no_input():
    def fill(*buffers):
        for buffer in buffers:
            buffer[...] = 5

    register_func("test.kernel.fill_all", fill, override=True)
    tensors = te.extern(
        [(), (0, 3), (2, 1)],
        [],
        lambda _, outs: call_packed("test.kernel.fill_all", *outs),
        dtype="float64",
        name="E",
    )
    s = te.create_schedule(tensors[0].op)
    arrays = [np.zeros(tensor.static_shape) for tensor in tensors]
    dlc.build(s, tensors)(*arrays)
    assert all(np.all(array == 5) for array in arrays)
    assert dlc.verify(s, tensors).worst == 0


def test_one_of_several_outputs_is_read():
    def sums(a, rows, columns):
        rows[...], columns[...] = a.sum(1), a.sum(0)

    register_func("test.kernel.sums", sums, override=True)
    A = te.placeholder((5, 6), name="A")
    X, _ = te.extern(
        [(5,), (6,)], [A], lambda i, o: call_packed("test.kernel.sums", *i, *o), name="S"
    )
    D = te.compute((5, 6), lambda i, j: X[i] + A[i, j], name="D")
    s = te.create_schedule(D.op)
    s[D].parallel(D.op.axis[0])
    assert dlc.verify(s, [A, D]).worst < 1
    assert "all safe" in str(dlc.races(s))


def test_memory_of_each_iteration_in_threads():
    B = te.placeholder((64, 7), name="B")

    def rows(ins, outs):
        ib = Builder()
        with ib.for_range(0, 64, "i", kind="parallel") as i:
            t = ib.allocate("float32", (1, 7), "t")
            whole = t.region((0, 0), (1, 7), "w")
            ib.emit(call_packed("test.kernel.copy", ins[0].region((i, 0), (1, 7)), whole))
            with ib.for_range(0, 7, "j") as j:
                ib.buffer_ptr(outs[0])[i, j] = t[0, j] * 2
        return ib.get()

    kernel = dlc.build(te.create_schedule((R := te.extern((64, 7), [B], rows)).op), [B, R])
    b, r = np.random.default_rng(5).random((64, 7), "float32"), np.zeros((64, 7), "float32")
    for _ in range(50):
        r[...] = 0
        kernel(b, r)
        assert np.array_equal(r, b * 2)


def test_it_is_not_timed_in_a_worker():
    A, B = _rows()
    kernel = dlc.build(te.create_schedule(B.op), [A, B])
    assert kernel.work is None
    with pytest.raises(MeasurementError, match="it calls code from outside"):
        dlc.measure(kernel)


def _extern(code):
    A = te.placeholder((8,), name="A")
    B = te.extern((8,), [A], lambda ins, outs: code(Builder(), ins[0], outs[0]), name="B")
    return te.create_schedule(B.op), [A, B]


def _race(ib, a, b):
    with ib.for_range(0, 8, kind="parallel") as i:
        ib.buffer_ptr(b)[0] = ib.buffer_ptr(a)[i]
    return ib.get()


def _race_of_calls(ib, a, b):
    with ib.for_range(0, 4, kind="parallel") as i:
        ib.emit(call_packed("test.kernel.copy", a.region((i,), (5,)), b.region((i,), (5,))))
    return ib.get()


def _unwritten(ib, a, b):
    ib.emit(call_packed("test.kernel.copy", a.region((0,), (7,)), b.region((0,), (7,))))
    return ib.get()


def _uninitialised(ib, a, b):
    t = ib.allocate("float32", (8,), "t")
    with ib.for_range(0, 8) as i:
        ib.buffer_ptr(b)[i] = t[i]
    return ib.get()


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (_race, r"iterations of parallel i \(B\), in code from outside, depend on each other"),
        (_race_of_calls, r"(?s)depend on each other.*B\[\d\] is written at i=\d"),
        (_unwritten, "code from outside uses B before it is written in full"),
        (_uninitialised, "code from outside uses t before it is written in full"),
    ],
)
def test_what_a_build_refuses(code, text):
    with pytest.raises(ScheduleError, match=text):
        dlc.build(*_extern(code))


@pytest.mark.parametrize("instrument", [None, "bounds"])
def test_regions_of_calls_stay_inside_their_buffers(instrument):
    def beyond(ib, a, b):
        with ib.for_range(0, 8) as i, ib.if_scope(i < 9):
            start = i + 1
            ib.emit(call_packed("test.kernel.copy", a.region((start,), (1,)), b.region((i,), (1,))))
        return ib.get()

    s, args = _extern(beyond)
    kernel = dlc.build(s, args, instrument=instrument)
    with pytest.raises(ProgramError, match=r"A\[.*\] is outside A"):
        kernel(np.zeros(8, "float32"), np.zeros(8, "float32"))


def test_memory_that_a_call_gets_is_shared_with_nothing():
    def code(ib, a, b):
        t, u = (ib.allocate("float32", (4096,), name) for name in "tu")
        ib.emit(call_packed("test.kernel.fill", t, 1.0))
        ib.emit(call_packed("test.kernel.fill", u, 2.0))
        ib.emit(call_packed("test.kernel.sum", t.access_ptr("r"), u.access_ptr("r"), b))
        return ib.get()

    register_func("test.kernel.fill", lambda t, x: t.fill(x), override=True)
    register_func("test.kernel.sum", lambda t, u, b: b.fill((t + u).sum()), override=True)
    s, args = _extern(code)
    b = np.zeros(8, "float32")
    dlc.build(s, args)(np.zeros(8, "float32"), b)
    assert np.all(b == 3 * 4096)


def test_a_device_cannot_call_what_the_process_has():
    A, B = _rows()
    with pytest.raises(UserError, match=r"test\.kernel\.scale is code from outside"):
        dlc.build(te.create_schedule(B.op), [A, B], "v100")
