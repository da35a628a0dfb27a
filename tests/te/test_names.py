"""Names and ranks that nothing can be made of are refused where they are given."""

import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.compat import tvm
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import call_packed, decl_buffer
from dlcompiler.ir.builder import Builder
from dlcompiler.ir.names import MAX_NAME

LONG = "x" * 10_000
A = te.placeholder((8,), name="A")
B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
S = te.create_schedule(B.op)


def _refused(make):
    with pytest.raises(ExpressionError) as error:
        make()
    return str(error.value)


def _loop(name):
    with Builder().for_range(0, 4, name=name):
        pass


MAKERS = {
    "te.placeholder": lambda name: te.placeholder((8,), name=name),
    "te.compute": lambda name: te.compute((8,), lambda i: A[i], name=name),
    "te.var": te.var,
    "te.reduce_axis": lambda name: te.reduce_axis((0, 8), name=name),
    "te.scan": lambda name: te.scan([], [], [], name=name),
    "te.extern": lambda name: te.extern((8,), [A], lambda ins, outs: None, name=name),
    "decl_tensor_intrin": lambda name: te.decl_tensor_intrin(A.op, lambda i, o: None, name),
    "thread_axis": lambda name: te.thread_axis("threadIdx.x", name=name),
    "te.comm_reducer": lambda name: te.comm_reducer(lambda x, y: x, lambda t: 0, name=name),
    "decl_buffer": lambda name: decl_buffer((8,), name=name),
    "ir_builder": _loop,
    "lower": lambda name: dlc.lower(S, [A, B], name=name),
    "build": lambda name: dlc.build(S, [A, B], name=name),
    "fork": S.fork,
    "call from outside": call_packed,
}


@pytest.mark.parametrize("maker", MAKERS)
def test_a_name_that_is_too_long(maker):
    assert _refused(lambda: MAKERS[maker](LONG)) == (
        f"{maker}: the name is too long\n  got       10000 characters\n  expected  at most 200"
    )


@pytest.mark.parametrize("name", ["\ud800", "a\nb", "a\x00", "a\x1b[31m"])
@pytest.mark.parametrize("maker", MAKERS)
def test_a_name_that_cannot_be_written(maker, name):
    text = _refused(lambda: MAKERS[maker](name))
    assert text.startswith(f"{maker}: ")
    assert ascii(name) in text
    assert all(line.isprintable() for line in text.split("\n"))


def test_the_longest_name_computes():
    name = "x" * MAX_NAME
    X = te.placeholder((8,), name=name)
    assert te.compute((8,), lambda i: X[i], name=name).name == name


def test_names_of_axes_come_from_parameters():
    code = eval(f"lambda {LONG}: A[{LONG}]", {"A": A})
    assert _refused(lambda: te.compute((8,), code)).startswith(
        "te.compute compute: the name is too long"
    )


def test_names_in_notation():
    text = _refused(lambda: te.notation(f"{'y' * 4000}[i] = A[i]", A=A))
    assert text.startswith("te.notation: the name is too long\n  got       4000 characters")


def test_a_rank_above_that_of_arrays():
    text = (
        "te.placeholder P: too many dimensions\n"
        "  got       65\n"
        "  expected  at most 64\n"
        "  because   arrays of NumPy have no more, and a reduction counts each of its axes"
    )
    assert _refused(lambda: te.placeholder((1,) * 65, name="P")) == text
    assert te.placeholder((1,) * 64).ndim == 64
    wide = _refused(lambda: te.compute((1,) * 65, lambda *i: 1.0, name="C"))
    assert wide.startswith("te.compute C: too many dimensions")


SHAPES = {
    "decl_buffer P": lambda shape: decl_buffer(shape, name="P"),
    "decl_buffer buf": lambda shape: Builder().allocate("float32", shape),
    "te.placeholder P": lambda shape: tvm.te.placeholder(shape, name="P"),
    "te.compute C": lambda shape: te.compute(shape, lambda *i: 1.0, name="C"),
    "te.extern E": lambda shape: te.extern(shape, [A], lambda ins, outs: None, name="E"),
    "te.notation, P": lambda shape: te.notation("C[i] = P[i]", P=(shape, "float32")),
    "te.compute T_full": lambda shape: tvm.topi.full(shape, "float32", 1.0),
}


@pytest.mark.parametrize("where", SHAPES)
def test_a_shape_is_checked_by_every_door(where):
    make = SHAPES[where]
    assert _refused(lambda: make((1,) * 65)).startswith(f"{where}: too many dimensions\n  got")
    assert _refused(lambda: make((2**20, 2**21))).startswith(f"{where}: the ")
    assert f"is too large\n  got       {2**41} elements" in _refused(lambda: make((2**20, 2**21)))
    negative = _refused(lambda: make((4, -1)))
    assert negative.startswith(f"{where}: an extent must not be negative\n  got       (4, -1)")


def test_a_buffer_of_64_dimensions():
    assert len(decl_buffer((1,) * 64).shape) == 64


TAGS = {
    "te.compute C": lambda tag: te.compute((8,), lambda i: A[i], name="C", tag=tag),
    "te.extern E": lambda tag: te.extern((8,), [A], lambda i, o: None, name="E", tag=tag),
    "te.tag_scope": lambda tag: tvm.te.tag_scope(tag).__enter__(),
}


@pytest.mark.parametrize("where", TAGS)
def test_a_tag_is_checked_as_a_name_is(where):
    assert _refused(lambda: TAGS[where](3)) == f"{where}: a tag is a text\n  got       3"
    assert _refused(lambda: TAGS[where](None)) == f"{where}: a tag is a text\n  got       None"
    assert _refused(lambda: TAGS[where](LONG)).startswith(f"{where}: the tag is too long")
    for tag in ("a\nb", "\ud800"):
        text = f"{where}: the tag has characters that cannot be printed\n  got       {tag!a}"
        assert _refused(lambda tag=tag: TAGS[where](tag)) == text


def test_a_tag_may_be_any_short_text():
    for tag in ("", "injective,pad", "Größe des Bilds"):
        assert te.compute((8,), lambda i: A[i], tag=tag).op.tag == tag


def test_a_scope_is_checked_as_a_name_is():
    assert _refused(lambda: decl_buffer((8,), scope=3)).endswith("a scope is a text\n  got       3")


def test_a_reduction_over_more_axes_than_arrays_have():
    X = te.placeholder((1,) * 64, name="X")
    k = te.reduce_axis((0, 1), name="k")
    text = _refused(
        lambda: te.compute((1,) * 64, lambda *i: te.sum(X[(*i[:-1], k)], axis=k), name="C")
    )
    assert text.startswith("te.compute C: too many dimensions\n  got       65")
