"""The machine code of the shipped intrinsics: its results, and the instructions that make them."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.codegen.llvm.debug import DebugInfo
from dlcompiler.codegen.llvm.intrinsics.box import Box
from dlcompiler.codegen.llvm.writer import Function, Module
from dlcompiler.errors import ExpressionError, InternalError, TargetError
from dlcompiler.measurement import verify
from dlcompiler.pipeline import build, emit_source, lower
from dlcompiler.pipeline.cross import cross_compile
from dlcompiler.schedule import create_schedule
from dlcompiler.target import resolve
from tests.intrinsics import dots, product, tiled

HOST = resolve("cpu")


def tensorized(m, n, k, tile):
    s, args, loop = tiled(m, n, k, tile)
    s[args[-1]].tensorize(loop, f"gemm_f32_{'x'.join(map(str, tile))}")
    return s, args


def numbers(rng, shape, dtype):
    if dtype == "float32":
        return rng.integers(-8, 9, shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.choice([info.min, info.max, -1 if info.min else 1, 0], shape).astype(dtype)


# -- results ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tile", [(1, 1, 1), (1, 16, 3), (3, 5, 7), (6, 16, 8), (6, 16, 9), (2, 24, 64), (5, 12, 17)]
)
def test_tiles_of_any_size(tile):
    m, n, k = (2 * size for size in tile)
    s, args = tensorized(m, n, k, tile)
    kernel = build(s, args)
    rng = np.random.default_rng(m * n * k)
    a, b = (numbers(rng, t.shape, "float32") for t in args[:2])
    c = np.full((m, n), np.nan, "float32")
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a @ b)


@pytest.mark.parametrize("kind", [6, 16])
def test_gemv_against_the_scalar_nest(kind):
    A, B, C = product(3, 2 * kind, 20)
    s = create_schedule(C.op)
    _, j_inner = s[C].split(C.op.axis[1], kind)
    plain = build(create_schedule(C.op), [A, B, C])
    s[C].tensorize(j_inner, f"gemv_f32_{kind}x20")
    kernel = build(s, [A, B, C])
    rng = np.random.default_rng(kind)
    a, b = rng.standard_normal((3, 20)), rng.standard_normal((20, 2 * kind))
    a, b = a.astype("float32"), b.astype("float32")
    got, expected = np.empty((3, 2 * kind), "float32"), np.empty((3, 2 * kind), "float32")
    kernel(a, b, got)
    plain(a, b, expected)
    bound = te.absolute_bound([C], {A: a, B: b})
    bound = bound[C] if isinstance(bound, dict) else bound[0]
    assert (np.abs(got - expected) <= 2 * bound).all()


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("dtype", "n", "groups"),
    list(itertools.product(["uint8", "int8"], [1, 3, 4, 8, 12, 16, 20], [1, 5])),
)
def test_dot_products_of_the_largest_numbers_do_not_saturate(dtype, n, groups):
    X, W, D = dots(2, n, groups, dtype)
    s = create_schedule(D.op)
    s[D].tensorize(D.op.axis[1], f"dot4_{'u8s8' if dtype == 'uint8' else 's8s8'}_{n}x{groups}")
    kernel = build(s, [X, W, D])
    rng = np.random.default_rng(n)
    x, w = numbers(rng, X.shape, dtype), numbers(rng, W.shape, "int8")
    x[0], w[:] = np.iinfo(dtype).max, 127  # 255·127 twice does not fit 16 bits
    d = np.full(D.shape, -1, "int32")
    kernel(x, w, d)
    np.testing.assert_array_equal(d, np.einsum("igq,gjq->ij", x.astype("i4"), w.astype("i4")))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_dot_products_that_are_added_to(dtype):
    X, W, D = dots(3, 16, 4, dtype)
    s = create_schedule(D.op)
    (i, j), (g, q) = D.op.axis, D.op.reduce_axis
    s[D].reorder(i, g, j, q)
    s[D].tensorize(j, f"dot4_{'u8s8' if dtype == 'uint8' else 's8s8'}_16x1")
    kernel = build(s, [X, W, D])
    rng = np.random.default_rng(1)
    x, w = numbers(rng, X.shape, dtype), numbers(rng, W.shape, "int8")
    d = np.full(D.shape, -1, "int32")
    kernel(x, w, d)
    np.testing.assert_array_equal(d, np.einsum("igq,gjq->ij", x.astype("i4"), w.astype("i4")))


def test_symbolic_strides():
    n = te.size_var("n")
    A, B = te.placeholder((5, 8, n), name="A"), te.placeholder((8, 16), name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((n, 5, 16), lambda x, i, j: te.sum(A[i, k, x] * B[k, j], axis=k), name="C")
    s = create_schedule(C.op)
    s[C].tensorize(C.op.axis[1], "gemm_f32_5x16x8")
    kernel = build(s, [A, B, C])
    rng = np.random.default_rng(2)
    for size in (1, 3):
        a, b = numbers(rng, (5, 8, size), "float32"), numbers(rng, (8, 16), "float32")
        c = np.full((size, 5, 16), np.nan, "float32")
        kernel(a, b, c)
        np.testing.assert_array_equal(c, np.einsum("ikx,kj->xij", a, b))


def test_elements_that_are_merely_aligned_to_themselves():
    s, args = tensorized(12, 32, 16, (6, 16, 8))
    kernel = build(s, args)
    rng = np.random.default_rng(3)
    arrays = []
    for tensor in args:
        shape = tensor.static_shape
        bytes_ = np.zeros(4 * int(np.prod(shape)) + 68, "uint8")
        first = -bytes_.ctypes.data % 64 + 4
        arrays.append(
            bytes_[first : first + 4 * int(np.prod(shape))].view("float32").reshape(shape)
        )
    a, b, c = arrays
    a[:], b[:] = numbers(rng, a.shape, "float32"), numbers(rng, b.shape, "float32")
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a @ b)


def test_the_bounds_instrument_looks_at_the_corners():
    s, args = tensorized(12, 32, 16, (6, 16, 8))
    text = str(lower(s, args, instrument="bounds"))
    corners = [line for line in text.splitlines() if line.strip().startswith("assert ")]
    assert len(corners) >= 8  # two of each region: one when it is reset, three of an update
    assert all(" is outside " in line for line in corners)
    kernel = build(s, args, instrument="bounds")
    a, b, c = (np.ones(t.static_shape, "float32") for t in args)
    kernel(a, b, c)
    assert (c == 16).all()


def test_code_and_lines_are_the_same_each_time():
    s, args = tensorized(12, 32, 16, (6, 16, 8))
    source = emit_source(s, args, HOST)[0]
    assert source.text == emit_source(s, args, HOST)[0].text
    lines = {line for line in source.lines if line}
    assert {4, 6} <= lines  # the reset and the update


@pytest.mark.parametrize("emitter", ["fma_tile", "dot4", "bits"])
def test_emitters_refuse_what_they_do_not_compute(emitter):
    A = te.placeholder((8,), "int32", "A")
    C = te.compute((8,), lambda i: A[i] + 1, name="C")
    s = create_schedule(C.op)
    s[C].tensorize(C.op.axis[0], te.decl_tensor_intrin(C.op, lambda i, o: emitter, "mine"))
    with pytest.raises(TargetError) as error:
        build(s, [A, C])
    assert str(error.value).startswith("generate LLVM code: the emitter computes ")
    assert "got       int32[8], int32[8]" in str(error.value)


@pytest.mark.parametrize("dtype", ["float64"])
def test_a_tile_of_doubles(dtype):
    _, _, tile = product(4, 8, 6, dtype)
    intrin = te.decl_tensor_intrin(tile.op, lambda i, o: ("fma_tile",) * 3, "tile")
    A, B, C = product(8, 8, 12, dtype)
    s = create_schedule(C.op)
    i_outer, i_inner = s[C].split(C.op.axis[0], 4)
    k_outer, k_inner = s[C].split(C.op.reduce_axis[0], 6)
    s[C].reorder(i_outer, k_outer, i_inner, C.op.axis[1], k_inner)
    s[C].tensorize(i_inner, intrin)
    kernel = build(s, [A, B, C])
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-8, 9, t.static_shape).astype(dtype) for t in (A, B))
    c = np.full((8, 8), np.nan, dtype)
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a @ b)


def test_neighbours_that_are_apart_are_a_mistake_of_ours():
    w = Function(Module(DebugInfo("f"), HOST.triple), "f", 1)
    with pytest.raises(
        InternalError, match="the elements of an intrinsic's vector are not adjacent"
    ):
        Box("%p", (4, 4), (1, 4), "float32").load(w, 4, 0, 0)


def bits(rows, planes, width):
    """Return numbers, and their first bits in words."""
    X, t = te.placeholder((rows, width), "uint8", "X"), te.reduce_axis((0, width), "t")
    word = f"uint{width}"

    def element(i, b):
        bit = (X[i, t].astype(word) >> b.astype(word)) & te.const(1, word)
        return te.sum(bit << t.astype(word), axis=t)

    return X, te.compute((rows, planes), element, name="P")


@pytest.mark.parametrize(("planes", "width"), [(1, 64), (3, 32), (8, 64)])
def test_bits_of_words(planes, width):
    X, P = bits(5, planes, width)
    s = create_schedule(P.op)
    s[P].tensorize(P.op.axis[1], f"bits_u{width}_{planes}x{width}")
    verify(s, [X, P])


@pytest.mark.parametrize("name", ["bits_u32_1x33", "bits_u64_9x64"])
def test_words_have_so_many_bits(name):
    with pytest.raises(ExpressionError, match="there is no intrinsic of this name"):
        te.tensor_intrin(name)


# -- instructions ----------------------------------------------------------------------------------


def text_of(target, kind, n=16):
    if kind == "bits":
        args = bits(1, 2, 64)
        s = create_schedule(args[1].op)
        s[args[1]].tensorize(args[1].op.axis[1], "bits_u64_2x64")
    elif kind == "gemm":
        m, lanes = te.gemm_tile(resolve(target))
        s, args = tensorized(m, lanes, 8, (m, lanes, 8))
    else:
        X, W, D = dots(1, n, 2, "uint8" if kind == "dot4_u8s8" else "int8")
        s, args = create_schedule(D.op), [X, W, D]
        s[D].tensorize(D.op.axis[1], f"{kind}_{n}x2")
    return cross_compile(s, args, target).assembly


@pytest.mark.parametrize(
    ("target", "kind", "there", "absent"),
    [
        ("x86-64-avx2", "gemm", ("vfmadd",), ("vmulps",)),
        ("x86-64-avx512", "gemm", ("vfmadd", "%zmm"), ("vmulps",)),
        ("x86-64-sse2", "gemm", ("mulps", "addps"), ("vfmadd",)),
        ("x86-64-avx2", "dot4_u8s8", ("vpmaddwd", "vpsrlw", "vpsraw"), ("vpmaddubsw",)),
        ("x86-64-avx2", "dot4_s8s8", ("vpmaddwd", "vpsraw"), ("vpmaddubsw", "vpmulld")),
        ("x86-64-sse2", "dot4_s8s8", ("pmaddwd",), ("pmaddubsw",)),
        ("x86-64-avx512", "bits", ("vptestmb", "kmovq"), ("vpmovmskb",)),
        ("x86-64-avx2", "bits", ("vpmovmskb",), ()),
        ("aarch64", "gemm", ("fmla",), ()),
        ("aarch64", "dot4_s8s8", (), ("vpmaddwd",)),
    ],
)
def test_instructions(target, kind, there, absent):
    text = text_of(target, kind)
    assert [word for word in there if word not in text] == []
    assert [word for word in absent if word in text] == []


def test_vnni_does_all_at_once():
    base = resolve("x86-64-avx512")
    target = replace(base, cpu="icelake-server", features=(*base.features, "+avx512vnni"))
    assert "vpdpbusd" in text_of(target, "dot4_u8s8")
    assert "vpdpbusd" not in text_of(target, "dot4_s8s8")
