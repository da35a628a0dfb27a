"""Classic intrinsics for tensor cores; `scripts/opt_conv_tensorcore.py` runs the tutorial's."""

import itertools

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import dtypes
from dlcompiler.compat import tvm
from dlcompiler.compat.tvm import te, tir
from dlcompiler.errors import ExpressionError, TargetError
from tests.codegen.gpu import cuda_on_cpu

SHAPES = ((16, 16, 16), (32, 8, 16), (8, 32, 16))
LOAD, STORE = "tir.tvm_load_matrix_sync", "tir.tvm_store_matrix_sync"
FILL, MULTIPLY = "tir.tvm_fill_fragment", "tir.tvm_mma_sync"
A, B, C = "wmma.matrix_a", "wmma.matrix_b", "wmma.accumulator"


def call(name, *args):
    ib = tir.ir_builder.create()
    ib.emit(tir.call_intrin("handle", name, *args))
    return ib.get()


def buffer(tensor, scope, **options):
    return tir.decl_buffer(tensor.shape, tensor.dtype, tensor.name, scope=scope, **options)


def copied(shape, dtype, product, layout, scope, **other):
    """Return the intrinsic that loads a fragment of a scope; for sums, the one that stores it."""
    source = te.placeholder(shape, dtype, "source")
    tile = te.compute(shape, other.get("declared") or (lambda i, j: source[i, j]), name="tile")
    fragment, memory = (source, tile) if scope == C else (tile, source)
    strides = [te.var("stride"), 1]
    binds = {fragment: buffer(fragment, scope), memory: buffer(memory, "shared", strides=strides)}

    def implement(ins, outs):
        inner, outer = (ins[0], outs[0]) if scope == C else (outs[0], ins[0])
        stride = other.get("stride", outer.strides[0])
        pointer = other.get("pointer", lambda x: x.access_ptr("w" if scope == C else "r"))
        return call(
            STORE if scope == C else LOAD, inner.data, *product, inner.elem_offset // 256,
            pointer(outer), stride, layout,
        )  # fmt: skip

    return te.decl_tensor_intrin(tile.op, implement, binds=binds)


def element(a, b, k, turned):
    """Return the element ``C[i, j]`` of a product whose operands may be transposed."""

    def sums(i, j):
        left, right = a[k, i] if turned[0] else a[i, k], b[j, k] if turned[1] else b[k, j]
        return te.sum(left.astype("float") * right.astype("float"), axis=k)

    return (lambda j, i: sums(i, j)) if turned[2] else sums


def product_of(m, n, k, dtype, turned):
    a = te.placeholder((k, m) if turned[0] else (m, k), dtype, "A")
    b = te.placeholder((n, k) if turned[1] else (k, n), dtype, "B")
    r = te.reduce_axis((0, k), "r")
    c = te.compute((n, m) if turned[2] else (m, n), element(a, b, r, turned), name="C")
    return a, b, c


def multiplied(product, dtype="float16", turned=(0, 0, 0), parts=None):
    """Return the intrinsic that multiplies fragments."""
    a, b, c = product_of(*product, dtype, turned)

    def implement(ins, outs):
        (left,), (right,) = ([x for x in ins if x.scope == scope] for scope in (A, B))
        (sums,) = outs
        numbered = [(x.data, x.elem_offset // 256) for x in (sums, left, right, sums)]
        update = call(MULTIPLY, *itertools.chain(*numbered))
        reset = call(FILL, sums.data, *product, sums.elem_offset // 256, 0.0)
        return (update, reset, update) if parts is None else parts(ins, sums, update, reset)

    binds = {a: buffer(a, A), b: buffer(b, B), c: buffer(c, C)}
    return te.decl_tensor_intrin(c.op, implement, binds=binds)


def program(product, dtype, turned, layouts=None):
    """Return a product of matrices: two warps a block, with tiles in shared memory."""
    m, n, k = product
    a, b, c = product_of(64, 64, 32, dtype, turned)
    s = te.create_schedule(c.op)
    shared = [s.cache_read(x, "shared", [c]) for x in (a, b)]
    left, right = (s.cache_read(x, scope, [c]) for x, scope in zip(shared, (A, B), strict=True))
    sums = s.cache_write(c, C)
    tile = (n, m) if turned[2] else (m, n)
    outer, y, x, inner = [], *s[c].op.axis, []
    for axis, size in ((y, tile[0]), (x, tile[1])):
        block, rest = s[c].split(axis, 32)
        middle, own = s[c].split(rest, size)
        outer.append(block)
        inner.append((middle, own))
    (warp, i), (step, j) = inner
    s[c].reorder(*outer, warp, step, i, j)
    for axis, tag in ((outer[0], "blockIdx.y"), (outer[1], "blockIdx.x"), (warp, "threadIdx.y")):
        s[c].bind(axis, te.thread_axis(tag))
    s[sums].compute_at(s[c], step)
    r, q = s[sums].split(s[sums].op.reduce_axis[0], k)
    s[sums].reorder(r, *s[sums].op.axis, q)
    for tensor in shared:
        s[tensor].compute_at(s[c], outer[1])
        _, lanes = s[tensor].split(s[tensor].fuse(*s[tensor].op.axis), 32)
        s[tensor].bind(lanes, te.thread_axis("threadIdx.x"))
    layouts = layouts or ["col_major" if is_turned else "row_major" for is_turned in turned]
    shapes = ((k, m) if turned[0] else (m, k)), ((n, k) if turned[1] else (k, n))
    for tensor, shape, layout, scope in zip((left, right), shapes, layouts, (A, B), strict=False):
        s[tensor].compute_at(s[sums], r)
        s[tensor].tensorize(tensor.op.axis[0], copied(shape, dtype, product, layout, scope))
    s[c].tensorize(i, copied(tile, "float32", product, layouts[2], C))
    s[sums].tensorize(s[sums].op.axis[0], multiplied(product, dtype, turned))
    return s, [a, b, c]


CASES = [
    *((product, "float16", turned) for product in SHAPES for turned in ((0, 0, 0), (1, 1, 1))),
    *((product, "bfloat16", turned) for product in SHAPES for turned in ((0, 1, 0), (1, 0, 1))),
]


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("product", "dtype", "turned"), CASES,
    ids=["-".join(["x".join(map(str, c[0])), c[1], "".join(map(str, c[2]))]) for c in CASES],
)  # fmt: skip
def test_products(product, dtype, turned, tmp_path):
    s, args = program(product, dtype, turned)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (t.shape)).astype(dtypes.to_numpy(dtype)) for t in args[:2])
    left, right = (x.astype("float32") for x in (a.T if turned[0] else a, b.T if turned[1] else b))
    expected = left @ right
    kernel = dlc.build(s, args, target="a100")
    text = kernel.source("cuda")
    assert "mma.sync" in text
    for run in (kernel, lambda *arrays: cuda_on_cpu.run(text, arrays, tmp_path)):
        result = np.full(args[2].shape, -1, "float32")
        run(a, b, result)
        np.testing.assert_array_equal(result, expected.T if turned[2] else expected)


def refused(make):
    with pytest.raises(ExpressionError) as error:
        make()
    return str(error.value)


def test_intrinsics_that_differ_in_their_layout_are_different():
    rows, columns = (
        copied((16, 16), "float16", SHAPES[0], f"{kind}_major", A) for kind in ("row", "col")
    )
    assert rows.id != columns.id


def test_fragments_are_loaded_as_the_product_reads_them():
    s, args = program(SHAPES[0], "float16", (0, 0, 0), ["col_major", "row_major", "row_major"])
    with pytest.raises(TargetError, match=r"uses A\.shared\.local in another way"):
        dlc.build(s, args, target="a100")


def test_a_whole_product_that_only_adds_starts_from_zero():
    intrin = multiplied(SHAPES[0])
    assert set(intrin.parts) == {"reset", "update"}


def test_what_differs_from_the_declaration_is_refused():
    load = lambda **other: copied((16, 16), "float16", SHAPES[0], "row_major", A, **other)  # noqa: E731
    assert refused(lambda: load(stride=16)) == (
        "decl_tensor_intrin tensor_intrin: the stride is not that of source\n"
        "  got       16\n"
        "  expected  stride, as the buffer is declared"
    )
    assert "there is no product of this shape\n  got       16x16x8" in refused(
        lambda: copied((16, 8), "float16", (16, 16, 8), "row_major", A)
    )
    assert "tile is not the matrix of a product of 32x8x16\n  got       16x16\n" in refused(
        lambda: copied((16, 16), "float16", (32, 8, 16), "row_major", A)
    )
    for pointer, words in (
        (lambda x: x.access_ptr("w"), "does not access all of source"),
        (
            lambda x: x.region((8, 0), (8, 16), "r"),
            "does not access all of source\n  got       sou",
        ),
        (lambda x: x, "the memory is no pointer"),
    ):
        assert words in refused(lambda pointer=pointer: load(pointer=pointer))
    assert "no such layout\n  got       'diagonal'" in refused(
        lambda: copied((16, 16), "float16", SHAPES[0], "diagonal", A)
    )
    assert "tile is no fragment\n  got       scope 'local'" in refused(
        lambda: copied((16, 16), "float16", SHAPES[0], "row_major", "local")
    )


def test_parts_that_are_not_the_product_are_refused():
    def make(parts):
        return refused(lambda: multiplied(SHAPES[0], parts=parts))

    fill = lambda sums, value: call(FILL, sums.data, 16, 16, 16, 0, value)  # noqa: E731
    assert "filled with a number other than 0\n  got       1.0" in make(
        lambda ins, sums, update, reset: (None, fill(sums, 1.0), update)
    )
    assert "the call uses another buffer than the expression\n  got       B\n  expected  A" in make(
        lambda ins, sums, *_: call(MULTIPLY, sums, 0, ins[1], 0, ins[0], 0, sums, 0)
    )
    assert "the call uses another buffer than the expression\n  got       A\n  expected  C" in make(
        lambda ins, sums, *_: call(MULTIPLY, sums, 0, ins[0], 0, ins[1], 0, ins[0], 0)
    )
    assert "these calls together are not supported" in make(
        lambda ins, sums, update, reset: type(update)((*update.calls, *update.calls))
    )
    assert "and other statements are in one intrinsic" in make(
        lambda ins, sums, update, reset: (None, sums.vstore([0, 0], 0.0), update)
    )


def test_calls_are_refused_elsewhere():
    with pytest.raises(ExpressionError, match=r"wrong number of arguments\n  got       2"):
        tir.call_intrin("handle", MULTIPLY, 1, 2)
    with pytest.raises(ExpressionError, match="products of single bits are not part"):
        tir.call_intrin("handle", "tir.tvm_bmma_sync", *range(8))
    ib = tir.ir_builder.create()
    with ib.for_range(0, 4):
        ib.emit(tir.call_intrin("handle", MULTIPLY, *range(8)))
    with pytest.raises(ExpressionError, match="calls for tensor cores stand among other"):
        ib.get()


@pytest.mark.parametrize("dtype", ["int8", "float64"])
def test_other_dtypes_are_refused(dtype):
    expected = f"tensor cores here have no matrix of this dtype\n  got       {dtype}\n"
    assert expected in refused(lambda: multiplied(SHAPES[0], dtype))
    assert expected in refused(lambda: copied((16, 16), dtype, SHAPES[0], "row_major", A))


def test_two_dtypes_are_refused():
    a, b, c = product_of(16, 16, 16, "float16", (0, 0, 0))
    b = te.placeholder((16, 16), "bfloat16", "B")
    c = te.compute((16, 16), element(a, b, te.reduce_axis((0, 16), "r"), (0, 0, 0)), name="C")
    binds = {a: buffer(a, A), b: buffer(b, B), c: buffer(c, C)}
    expected = "the matrices have different dtypes\n  got       A float16, B bfloat16"
    assert expected in refused(
        lambda: te.decl_tensor_intrin(
            c.op, lambda ins, outs: call(MULTIPLY, outs[0], 0, ins[0], 0, ins[1], 0, outs[0], 0),
            binds=binds,
        )
    )  # fmt: skip


def test_an_offset_is_only_for_calls_of_tensor_cores():
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: x[i], name="y")
    with pytest.raises(ExpressionError, match="the statement is not valid"):
        te.decl_tensor_intrin(y.op, lambda ins, outs: outs[0].vstore([outs[0].elem_offset], 1.0))


def test_sums_of_halves_are_refused():
    expected = "tensor cores here have no matrix of this dtype\n  got       float16\n"
    assert expected in refused(lambda: copied((16, 16), "float16", SHAPES[0], "row_major", C))


def test_an_older_processor_is_refused():
    s, args = program(SHAPES[0], "float16", (0, 0, 0))
    with pytest.raises(TargetError, match="expected  sm_80 or later"):
        tvm.build(s, args, "cuda -arch=sm_70")
