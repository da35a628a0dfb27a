"""What the sources of a few programs look like, and that they compute the right thing."""

import subprocess
import sys

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.errors import OutOfMemory
from dlcompiler.ir import For, Store, print_func, walk
from dlcompiler.pipeline import emit_source


def add():
    A, B = te.placeholder((64,), name="A"), te.placeholder((64,), name="B")
    C = te.compute((64,), lambda i: A[i] + B[i], name="C")
    s = te.create_schedule(C.op)
    _, inner = s[C].split(C.op.axis[0], factor=8)
    s[C].vectorize(inner)
    return s, [A, B, C], "add"


def tiled_matmul():
    A, B = te.placeholder((30, 24), name="A"), te.placeholder((24, 20), name="B")
    k = te.reduce_axis((0, 24), name="k")
    C = te.compute((30, 20), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    local = s.cache_write(C, "local")
    i, j, _, _ = s[C].tile(*C.op.axis, 8, 4)
    s[C].parallel(i)
    s[local].compute_at(s[C], j)
    _, k_inner = s[local].split(s[local].op.reduce_axis[0], factor=2)
    s[local].unroll(k_inner)
    return s, [A, B, C], "tiled_matmul"


def padded_conv():
    X = te.placeholder((2, 9, 9), "float16", name="X")
    W = te.placeholder((2, 3, 3), "float16", name="W")
    P = te.compute(
        (2, 11, 11),
        lambda c, y, x: te.if_then_else(
            te.all(y >= 1, y < 10, x >= 1, x < 10), X[c, y - 1, x - 1], te.const(0, "float16")
        ),
        name="P",
    )
    c, dy, dx = (te.reduce_axis((0, n), name=m) for n, m in ((2, "c"), (3, "dy"), (3, "dx")))
    Y = te.compute(
        (5, 5),
        lambda y, x: te.sum(P[c, y * 2 + dy, x * 2 + dx] * W[c, dy, dx], axis=[c, dy, dx]),
        name="Y",
    )
    s = te.create_schedule(Y.op)
    s[P].compute_inline()
    return s, [X, W, Y], "padded_conv"


def guarded_sum():
    A = te.placeholder((7, 13), "int32", name="A")
    k = te.reduce_axis((0, 13), name="k")
    B = te.compute((7,), lambda i: te.sum(A[i, k] // 3, axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].split(s[B].op.reduce_axis[0], factor=4)
    return s, [A, B], "guarded_sum"


def symbolic():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    B = te.compute((n, m), lambda i, j: te.exp(A[i, j]) - A[i, j], name="B")
    C = te.compute((m, n), lambda j, i: B[i, j] / te.sqrt(B[n - 1 - i, j]), name="C")
    s = te.create_schedule(C.op)
    s[B].parallel(B.op.axis[0])
    s[C].split(C.op.axis[0], factor=4)
    return s, [A, C], "symbolic"


PROGRAMS = {f.__name__: f for f in (add, tiled_matmul, padded_conv, guarded_sum, symbolic)}


@pytest.mark.parametrize("name", PROGRAMS)
def test_golden(name, golden):
    s, args, symbol = PROGRAMS[name]()
    source, func = emit_source(s, args, "c", symbol)
    golden(name, source.text.partition('changes results"\n#endif\n')[2].lstrip())
    line_of = print_func(func).line_of
    carried_out = {line_of[id(s)] for s in walk(func.body) if isinstance(s, Store | For)}
    assert carried_out <= {*source.lines}


def test_header(golden):
    s, args, name = symbolic()
    golden("header", emit_source(s, args, "c", name)[0].named("header"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_results(name, compiler):
    s, args, symbol = PROGRAMS[name]()
    kernel = dlc.build(s, args, "c", symbol)
    sizes = {"n": 6, "m": 5}
    generator = np.random.default_rng(3)
    *given, result = [
        generator.integers(-9, 9, param.at(sizes).static_shape).astype(param.dtype)
        for param in kernel.params
    ]
    kernel(*given, result)
    machine = np.empty_like(result)
    dlc.build(s, args)(*given, machine)
    np.testing.assert_allclose(result, machine, rtol=1e-5)
    if result.dtype.kind != "f" or name in ("add", "tiled_matmul"):
        np.testing.assert_array_equal(result, te.evaluate(args[-1], given))


def test_the_text_is_the_same_in_another_process():
    s, args, name = tiled_matmul()
    code = (
        "from tests.codegen.c.test_text import *\n"
        "print(emit_source(*tiled_matmul()[:2], 'c', 'tiled_matmul')[0].text, end='')"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout == emit_source(s, args, "c", name)[0].text


def test_no_memory_for_a_temporary(compiler):
    n = te.var("n")
    A = te.placeholder((1,), name="A")
    B = te.compute((n, n, n), lambda i, j, k: A[0] + i, name="B")
    C = te.compute((1,), lambda i: B[0, 0, 0], name="C")
    kernel = dlc.build(te.create_schedule(C.op), [n, A, C], "c")
    a, c = np.ones(1, "float32"), np.empty(1, "float32")
    with pytest.raises(OutOfMemory, match=r"^call main: not enough memory for temporaries: B$"):
        kernel(2**22, a, c)
    kernel(3, a, c)
    assert c == 1


def test_an_index_outside_is_told(compiler):
    A, at = te.placeholder((4,), name="A"), te.placeholder((4,), "int32", name="at")
    B = te.compute((4,), lambda i: A[te.assume_bounds(at[i])], name="B")
    s = te.create_schedule(B.op)
    s[B].parallel(B.op.axis[0])
    kernel = dlc.build(s, [A, at, B], "c", "gather", instrument="bounds")
    assert "#define GATHER_ASSERTION_2 2  /* A[at[i]] is outside A[4] */" not in kernel.header
    a, b = np.arange(4, dtype="float32"), np.empty(4, "float32")
    kernel(a, np.array([3, 0, 2, 1], "int32"), b)
    assert b.tolist() == [3, 0, 2, 1]
    with pytest.raises(dlc.errors.ProgramError) as caught:
        kernel(a, np.array([3, 4, 2, 1], "int32"), b)
    assert "is outside A[4]" in str(caught.value)


def _gather(*, is_parallel):
    n = te.var("n")
    A, at = te.placeholder((4, 3), name="A"), te.placeholder((n,), "int32", name="at")
    B = te.compute((n, 2), lambda i, j: A[at[i], at[i] - j], name="B")
    s = te.create_schedule(B.op)
    if is_parallel:
        s[B].parallel(B.op.axis[0])
    return s, [A, at, B]


@pytest.mark.campaign
@pytest.mark.parametrize("is_parallel", [False, True])
@pytest.mark.parametrize(("wrong", "text"), [
    (4, "index 4 in dimension 0 of extent 4, at i=33"),
    (-7, "index -7 in dimension 0 of extent 4, at i=33"),
    (3, "index 3 in dimension 1 of extent 3, at i=33, j=0"),
    (0, "index -1 in dimension 1 of extent 3, at i=33, j=1"),
])  # fmt: skip
def test_an_index_outside_is_told_as_machine_code_tells_it(compiler, is_parallel, wrong, text):
    a, b = np.arange(12, dtype="float32").reshape(4, 3), np.empty((40, 2), "float32")
    at = np.full(40, 1, "int32")
    at[33] = wrong
    told = []
    for target in ("cpu", "c"):
        kernel = dlc.build(*_gather(is_parallel=is_parallel), target)
        with pytest.raises(dlc.errors.ProgramError) as caught:
            kernel(a, at, b)
        told.append(str(caught.value))
    assert told[0] == told[1]
    assert told[0].endswith(text)


def test_an_array_named_as_what_a_function_declares(compiler):
    A, at = te.placeholder((4,), name="report"), te.placeholder((4,), "int32", name="status")
    B = te.compute((4,), lambda i: A[at[i]], name="done")
    kernel = dlc.build(te.create_schedule(B.op), [A, at, B], "c")
    a, b = np.arange(4, dtype="float32"), np.empty(4, "float32")
    kernel(a, np.array([3, 0, 2, 1], "int32"), b)
    assert b.tolist() == [3, 0, 2, 1]
