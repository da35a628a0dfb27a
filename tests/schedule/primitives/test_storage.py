"""set_scope, storage_align, double_buffer and pragma: what they leave in the nests, refusals."""

import pytest

from dlcompiler import te
from dlcompiler.ir import Allocate, walk
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule
from dlcompiler.schedule.primitives.pragma import HINTS, REFUSED


@pytest.fixture
def planes(chain):
    """P doubles A of 5×6×7, and C adds one."""
    A = te.placeholder((5, 6, 7), "int32", name="A")
    P = te.compute((5, 6, 7), lambda i, j, k: A[i, j, k] * 2, name="P")
    C = te.compute((5, 6, 7), lambda i, j, k: P[i, j, k] + 1, name="C")
    chain.s, chain.A, chain.P, chain.C, chain.args = create_schedule(C.op), A, P, C, [A, C]
    return chain


def buffer_of_p(case):
    func = lower(case.s, case.args, simple_mode=True)
    return next(node for node in walk(func.body) if isinstance(node, Allocate))


# -- set_scope ------------------------------------------------------------------------------------


def test_set_scope(planes, nest, golden, computes):
    planes.s[planes.P].set_scope("local")
    golden("set_scope", nest(planes))
    computes(planes.s)
    planes.s[planes.P].set_scope("")
    assert planes.s[planes.P].scope == "global"


@pytest.mark.parametrize("scope", ["sharde", 3, ["local"]])
def test_set_scope_refuses_an_unknown_scope(planes, refusal, scope):
    assert refusal(planes.s[planes.P].set_scope, scope) == (
        "set_scope P: no such memory scope\n"
        f"  got       {scope!r}\n"
        "  hint      known scopes: global, local, shared, warp"
    )


@pytest.mark.parametrize(
    ("name", "args"), [("set_scope", ("local",)), ("double_buffer", ()), ("storage_align", (8,))]
)
def test_refuses_memory_of_the_caller(planes, refusal, name, args):
    def call(tensor):
        axes = (planes.C.op.axis[0],) if name == "storage_align" else ()
        return refusal(getattr(planes.s[tensor], name), *axes, *args)

    subject = name + " {}.i" if name == "storage_align" else name + " {}"
    assert call(planes.A).endswith(": A is an input: its memory is the caller's")
    assert call(planes.C) == (
        f"{subject.format('C')}: C is an output: its memory is the caller's\n"
        "  hint      cache it first, with s.cache_write(…), and choose for the cache"
    )
    planes.s[planes.P].compute_inline()
    assert call(planes.P).endswith(": P is inlined: it is not stored")


# -- storage_align --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dimension", "factor", "offset", "strides"),
    [
        (1, 8, 0, (48, 8, 1)),
        (1, 8, 1, (54, 9, 1)),
        (0, 16, 0, (48, 7, 1)),
        (0, 16, 3, (51, 7, 1)),
        (2, 4, 2, (84, 14, 2)),
        (1, 7, 0, (42, 7, 1)),
        (1, 4, 9, (54, 9, 1)),
    ],
)
def test_storage_align_pads_a_stride(planes, computes, dimension, factor, offset, strides):
    planes.s[planes.P].storage_align(planes.P.op.axis[dimension], factor, offset)
    assert buffer_of_p(planes).buffer.strides == strides
    computes(planes.s)


def test_storage_align_of_the_part_that_is_stored(planes, nest, golden, computes):
    s, P, C = planes.s, planes.P, planes.C
    i, j, k = P.op.axis
    s[P].split(k, 4)
    s[P].storage_align(i, 16, 1)
    s[P].storage_align(j, 8)
    s[P].compute_at(s[C], C.op.axis[0])
    golden("storage_align", nest(planes))
    computes(s)


def test_storage_align_refuses_what_is_no_dimension(matmul, planes, refusal):
    s, P = planes.s, planes.P
    outer, _ = s[P].split(P.op.axis[2], 4)
    assert refusal(s[P].storage_align, outer, 8) == (
        "storage_align P.k.outer: the axis is no dimension of P\n"
        "  got       k.outer\n"
        "  hint      the dimensions are: i, j, k"
    )
    assert "got       3" in refusal(s[P].storage_align, 3, 8)


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((0, 0), "factor must be at least 1"),
        ((2.5, 0), "factor must be an integer"),
        ((8, -1), "offset must not be negative"),
        ((8, True), "offset must be an integer"),
        ((2**17, 0), "the buffer would be mostly padding"),
    ],
)
def test_storage_align_refuses_numbers(planes, refusal, numbers, text):
    axis = planes.P.op.axis[0]
    first = refusal(planes.s[planes.P].storage_align, axis, *numbers).splitlines()[0]
    assert first == f"storage_align P.i: {text}"


# -- align_extent ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("factor", "extent"), [(4, 8), (7, 7), (16, 16)])
def test_align_extent_computes_whole_vectors(computes, factor, extent):
    A = te.placeholder((4, 7), "int32", "A")
    P = te.compute((4, 10), lambda i, j: te.if_then_else(j < 7, A[i, j], 0) * 2, name="P")
    C = te.compute((4, 7), lambda i, j: P[i, j] + 1, name="C")
    s = te.create_schedule(C.op)
    s[P].compute_at(s[C], C.op.axis[0])
    s[P].align_extent(P.op.axis[1], factor)
    func = lower(s, [A, C])
    shapes = [node.buffer.shape for node in walk(func.body) if isinstance(node, Allocate)]
    assert shapes == [(1, extent)]
    computes(s)


def test_align_extent_refuses_outputs_and_factors_beyond_a_vector(planes, refusal):
    s, P, C = planes.s, planes.P, planes.C
    assert "C is an output" in refusal(s[C].align_extent, C.op.axis[0], 8)
    assert "most of the elements computed" in refusal(s[P].align_extent, P.op.axis[0], 65)
    assert "no dimension of P" in refusal(s[P].align_extent, 3, 8)


# -- double_buffer --------------------------------------------------------------------------------


def test_double_buffer_is_asked_for(planes, nest, golden, computes):
    s, P, C = planes.s, planes.P, planes.C
    s[P].compute_at(s[C], C.op.axis[0])
    s[P].double_buffer()
    assert buffer_of_p(planes).double.name == "i"
    golden("double_buffer", nest(planes))
    computes(s)


# -- pragma ---------------------------------------------------------------------------------------


@pytest.mark.campaign
@pytest.mark.parametrize("name", HINTS)
def test_pragma_leaves_a_note(planes, nest, computes, name):
    s, C = planes.s, planes.C
    s[C].pragma(C.op.axis[0], name, 4)
    assert f"for i in range(5):  # {name} = 4" in nest(planes)
    before = s.state.stage("C").pragmas
    s[C].pragma(C.op.axis[0], name, 4)
    assert s.state.stage("C").pragmas == before
    computes(s)


def test_pragma_of_a_primitive(planes):
    s, C = planes.s, planes.C
    i, _, k = C.op.axis
    s[C].pragma(i, "unroll")
    s[C].pragma(k, "vectorize")
    assert (s[C].state.kind(i), s[C].state.kind(k)) == ("unrolled", "vectorized")
    assert 's[C].pragma(i, "unroll")' in s.trace.to_python()


def test_pragma_refuses_what_the_primitive_refuses(matmul, refusal):
    text = refusal(matmul.s[matmul.C].pragma, matmul.k, "vectorize")
    assert text.startswith("pragma C.k: a reduction axis cannot be vectorized")


@pytest.mark.parametrize("name", REFUSED)
def test_pragma_refuses_what_changes_values(matmul, refusal, name):
    assert refusal(matmul.s[matmul.C].pragma, matmul.i, name, 1) == (
        f"pragma C.i: the pragma {name} is not available\n  because   {REFUSED[name]}"
    )


def test_pragma_refuses_unknown_names_and_values(matmul, refusal):
    assert refusal(matmul.s[matmul.C].pragma, matmul.i, "fast") == (
        "pragma C.i: no such pragma\n"
        "  got       'fast'\n"
        f"  hint      known pragmas: unroll, vectorize, {', '.join(HINTS)}"
    )
    assert refusal(matmul.s[matmul.C].pragma, matmul.i, "unroll_explicit", "yes") == (
        "pragma C.i: pragma_value must be an integer\n  got       'yes' (str)"
    )


@pytest.mark.parametrize("primitive", ["split", "fuse", "tile", "cache_write"])
def test_a_pragma_is_not_lost(matmul, refusal, primitive):
    s, C, i, j = matmul.s, matmul.C, matmul.i, matmul.j
    s[C].pragma(i, "unroll_explicit", True)
    call = {
        "split": lambda: s[C].split(i, 2),
        "fuse": lambda: s[C].fuse(i, j),
        "tile": lambda: s[C].tile(i, j, 2, 2),
        "cache_write": lambda: s.cache_write(C, "local"),
    }[primitive]
    lines = refusal(call).splitlines()
    assert lines[0].endswith(": the loop has a pragma already, and would lose that")
    assert lines[1:] == [
        "  got       C.i, unroll_explicit",
        "  hint      undo that step, and give the new loop the pragma afterwards",
    ]


def test_a_pragma_of_a_reduction_loop_moves_along(matmul, nest):
    s, C = matmul.s, matmul.C
    s[C].pragma(matmul.k, "unroll_explicit")
    s.cache_write(C, "local")
    assert "for k in range(8):  # unroll_explicit = 1" in nest(matmul)
    ko, ki = (te.reduce_axis((0, 2), name=n) for n in ("ko", "ki"))
    D = te.compute((4,), lambda i: te.sum(matmul.A[i, ko * 2 + ki], axis=[ko, ki]), name="D")
    s = create_schedule(D.op)
    s[D].pragma(ki, "unroll_explicit")
    partial = s.rfactor(D, ko)
    assert s[partial].state.pragmas[ki] == {"unroll_explicit": 1}
