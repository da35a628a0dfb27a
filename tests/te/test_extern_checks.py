"""Statements of the user's own stay inside their buffers: proved, refused, or checked."""

import numpy as np
import pytest

from dlcompiler import ir, te
from dlcompiler.errors import ExpressionError, ProgramError
from dlcompiler.ir import For, Load, Store, Var, index_const
from dlcompiler.pipeline import build, lower
from dlcompiler.schedule import create_schedule

A = te.placeholder((5,), name="A")
IX = te.placeholder((5,), "int32", name="IX")
WAYS = ("cpu", "c")


@te.hybrid.script
def scatter(a, ix):
    b = output_tensor((8,), "float32")  # noqa: F821  a word of hybrid script
    for i in range(8):
        b[i] = 0.0
    for i in range(5):
        b[ix[i]] = a[i]
    return b


@te.hybrid.script
def guarded(a, ix):
    b = output_tensor((8,), "float32")  # noqa: F821
    for i in range(8):
        b[i] = 0.0
    for i in range(5):
        if ix[i] >= 0 and ix[i] < 8:
            b[ix[i]] = a[i]
    return b


@te.hybrid.script
def assumed(a, ix):
    b = output_tensor((8,), "float32")  # noqa: F821
    for i in range(8):
        b[i] = 0.0
    for i in range(5):
        b[assume_bounds(ix[i])] = a[i]  # noqa: F821
    return b


def text(C, *args):
    return str(lower(create_schedule(C.op), [*args, C], simple_mode=True))


@pytest.mark.parametrize("wrong", [8, -1, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("way", WAYS)
def test_a_store_at_an_index_that_is_read(way, wrong):
    C = scatter(A, IX)
    kernel = build(create_schedule(C.op), [A, IX, C], target=way)
    index, out = np.array([7, 0, 3, 1, 2], "int32"), np.empty(8, "float32")
    kernel(np.ones(5, "float32"), index, out)
    assert out.tolist() == [1, 1, 1, 1, 0, 0, 0, 1]
    index[3] = wrong
    with pytest.raises(ProgramError, match="is outside scatter"):
        kernel(np.ones(5, "float32"), index, out)


def test_the_text_of_the_error():
    C = scatter(A, IX)
    kernel = build(create_schedule(C.op), [A, IX, C])
    with pytest.raises(ProgramError) as caught:
        kernel(np.ones(5, "float32"), np.arange(4, 9, dtype="int32"), np.empty(8, "float32"))
    assert str(caught.value) == (
        "call main: scatter[index(IX[i_1])] is outside scatter: index 8 in dimension 0 of extent "
        "8, at i_1=4"
    )


def test_a_guard_proves_it():
    assert "assert" not in text(guarded(A, IX), A, IX)


def test_a_promise_leaves_the_check_out():
    shown = text(assumed(A, IX), A, IX)
    assert "assert" not in shown
    assert "assume_bounds(index(IX[" in shown


def statements(write):
    """Return a tensor of 8 numbers that statements compute from A and IX."""

    def code(ins, outs):
        builder = ir.Builder()
        a, ix, out = (builder.buffer_ptr(buffer) for buffer in (*ins, *outs))
        with builder.for_range(0, 8) as i:
            out[i] = 0.0
        write(builder, a, ix, out)
        return builder.get()

    return te.extern((8,), [A, IX], code, name="E", dtype="float32")


def changed_under_its_condition(builder, a, ix, out):
    work = builder.allocate("int32", (5,), name="work")
    with builder.for_range(0, 5) as i:
        work[i] = ix[i]
        with builder.if_scope(work[i] < 8), builder.if_scope(work[i] >= 0):
            work[i] = work[i] * 2
            out[work[i]] = a[i]


def asserted(builder, a, ix, out):
    with builder.for_range(0, 5) as i, builder.if_scope(te.all(ix[i] < 8, ix[i] >= 0)):
        out[ix[i]] = a[i]


def test_a_condition_on_what_is_written_is_forgotten():
    C = statements(changed_under_its_condition)
    kernel = build(create_schedule(C.op), [A, IX, C])
    kernel(np.ones(5, "float32"), np.arange(-1, 4, dtype="int32"), np.empty(8, "float32"))
    with pytest.raises(ProgramError, match="index 8 in dimension 0 of extent 8"):
        kernel(np.ones(5, "float32"), np.full(5, 4, "int32"), np.empty(8, "float32"))


def test_a_condition_on_what_nobody_writes_is_kept():
    assert "assert" not in text(statements(asserted), A, IX)


# -- tensor intrinsics ----------------------------------------------------------------------------

a = te.placeholder((4,), name="a")
b = te.compute((4,), lambda i: a[i] * 2.0, name="b")


def doubled(place):
    def code(ins, outs):
        i = Var("i")
        value = Load(ins[0], (i,)) * 2.0
        return For(i, index_const(4), "serial", Store(outs[0], (place(i),), value))

    return te.decl_tensor_intrin(b.op, code, "doubled")


@pytest.mark.parametrize("place", [lambda i: i + 1, lambda i: i - 1, lambda i: i * 2])
def test_an_intrinsic_that_certainly_stores_outside_is_refused(place):
    with pytest.raises(ExpressionError, match="uses an element outside its buffer"):
        doubled(place)


def test_an_intrinsic_that_may_store_outside_is_checked():
    intrinsic = doubled(lambda i: i * i)
    X = te.placeholder((8,), name="X")
    Y = te.compute((8,), lambda i: X[i] * 2.0, name="Y")
    s = create_schedule(Y.op)
    _, inner = s[Y].split(Y.op.axis[0], 4)
    s[Y].tensorize(inner, intrinsic)
    kernel = build(s, [X, Y])
    with pytest.raises(ProgramError, match=r"b\[i\*i\] is outside b: index 4"):
        kernel(np.ones(8, "float32"), np.empty(8, "float32"))


@pytest.mark.parametrize("way", WAYS)
def test_a_loop_whose_extent_changes_while_it_runs(way):
    """The extent is read once, so that what it has become says nothing of the variable."""

    def code(ins, outs):
        ib = ir.Builder()
        out, count = ib.buffer_ptr(outs[0]), ib.allocate("int32", (1,), name="count")
        count[0] = 1000
        with ib.for_range(0, count[0], name="j") as j:
            count[0] = 4
            with ib.if_scope(count[0] <= 4):
                out[j] = 1.0
        return ib.get()

    C = te.extern((4,), [], code, dtype="float32", name="C")
    kernel = build(create_schedule(C.op), [C], target=way)
    with pytest.raises(ProgramError, match=r"C\[j\] is outside C"):
        kernel(np.empty(4, "float32"))


@pytest.mark.parametrize("way", WAYS)
def test_elements_that_statements_by_hand_leave_unwritten_are_0(way):
    def code(ins, outs):
        ib = ir.Builder()
        with ib.for_range(0, 5) as i, ib.if_scope(ib.buffer_ptr(ins[0])[i] > 0):
            ib.buffer_ptr(outs[0])[i] = ib.buffer_ptr(ins[0])[i]
        return ib.get()

    C = te.extern((5,), [A], code, name="C")
    kernel = build(create_schedule(C.op), [A, C], target=way)
    out = np.full(5, 77, "float32")
    kernel(np.array([1, -1, 2, -2, 3], "float32"), out)
    assert out.tolist() == [1, 0, 2, 0, 3]


def backwards(first, **options):
    def code(ins, outs):
        ib = ir.Builder()
        with ib.for_range(first, 5) as i:
            ib.buffer_ptr(outs[0])[4 - i] = ib.buffer_ptr(ins[0])[i]
        return ib.get()

    return te.extern((5,), [A], code, name="C", **options)


def test_what_is_promised_to_be_written_is_not_filled():
    assert text(backwards(0), A).count("for ") == 2
    assert text(backwards(0, is_complete=True), A).count("for ") == 1
    a = np.arange(5, dtype="float32")
    assert te.evaluate(backwards(0, is_complete=True), [a]).tolist() == [4, 3, 2, 1, 0]
    with pytest.raises(ProgramError, match="never written"):
        te.evaluate(backwards(1, is_complete=True), [a])


def test_what_statements_certainly_write_is_not_filled():
    def code(ins, outs):
        ib = ir.Builder()
        with ib.for_range(0, 5) as i:
            ib.buffer_ptr(outs[0])[i] = ib.buffer_ptr(ins[0])[i]
        return ib.get()

    assert text(te.extern((5,), [A], code, name="C"), A).count("for ") == 1
