"""Products that a user wrote: which are recognised, and the operator's schedule applied to them."""

import pytest

from dlcompiler import te
from dlcompiler.measurement import verify
from dlcompiler.ops import operator
from dlcompiler.ops.gemm.written import product_of, schedule_product
from dlcompiler.schedule import create_schedule
from dlcompiler.target import resolve
from dlcompiler.target.presets import AARCH64, X86_64_AVX2

MATMUL = operator("matmul")


def product(m, n, k, dtype="float32", *, is_turned=False):
    A, B = te.placeholder((m, k), dtype, name="A"), te.placeholder((k, n), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")

    def element(i, j):
        factors = (B[r, j], A[i, r]) if is_turned else (A[i, r], B[r, j])
        return te.sum(factors[0] * factors[1], axis=r)

    return A, B, te.compute((m, n), element, name="C")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("is_turned", [False, True])
def test_a_product_is_recognised(dtype, is_turned):
    *_, C = product(6, 4, 5, dtype, is_turned=is_turned)
    assert product_of(C) == MATMUL.workload(m=6, n=4, k=5, dtype=dtype)


def others():
    A, B = te.placeholder((8, 8), name="A"), te.placeholder((8, 8), name="B")
    H, N = te.placeholder((8, 8), "float16", name="H"), te.placeholder((8, 8), "int32", name="N")
    k = te.reduce_axis((0, 8), name="k")
    n = te.var("n")
    V = te.placeholder((n, n), name="V")
    r = te.reduce_axis((0, n), name="r")
    yield "a placeholder", A
    yield "no reduction", te.compute((8, 8), lambda i, j: A[i, j] * B[i, j], name="C")
    for name, element in {
        "a diagonal": lambda i, j: te.sum(A[k, k] * B[k, j], axis=k),
        "no operand with i": lambda i, j: te.sum(A[j, k] * B[k, j], axis=k),
        "its own square": lambda i, j: te.sum(A[i, k] * A[k, j], axis=k),
        "a sum of sums": lambda i, j: te.sum(A[i, k] + B[k, j], axis=k),
        "a maximum": lambda i, j: te.max(A[i, k] * B[k, j], axis=k),
        "a shifted index": lambda i, j: te.sum(A[i, k] * B[(k + 1) % 8, j], axis=k),
        "a condition": lambda i, j: te.sum(A[i, k] * B[k, j], axis=k, where=k < i),
        "16 bits": lambda i, j: te.sum(H[i, k] * H[k, j], axis=k),
        "integers": lambda i, j: te.sum(N[i, k] * N[k, j], axis=k),
        "one index": lambda i: te.sum(A[i, k] * B[k, i], axis=k),
    }.items():
        shape = (8,) if name == "one index" else (8, 8)
        yield name, te.compute(shape, element, name="C")
    S = te.compute((n, n), lambda i, j: te.sum(V[i, r] * V[r, j], axis=r), name="S")
    yield "symbols", S


@pytest.mark.parametrize(("name", "tensor"), [pytest.param(*each, id=each[0]) for each in others()])
def test_what_is_no_product(name, tensor):
    assert product_of(tensor) is None, name


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("m", "n", "k"), [(64, 64, 64), (48, 40, 20), (13, 17, 5), (4, 64, 64), (1, 1, 1), (96, 6, 33)]
)
@pytest.mark.parametrize("target", [resolve("cpu"), X86_64_AVX2], ids=["cpu", "avx2"])
def test_the_default_schedule_is_right(m, n, k, target):
    args = product(m, n, k)
    s = create_schedule(args[-1].op)
    schedule_product(s, args[-1], MATMUL.default_config(product_of(args[-1]), target), target)
    assert "numpy" in verify(s, args).oracles


@pytest.mark.campaign
def test_other_machines_have_theirs():
    args = product(64, 64, 64, "float64")
    s = create_schedule(args[-1].op)
    config = MATMUL.default_config(product_of(args[-1]), AARCH64)
    schedule_product(s, args[-1], config, AARCH64)
    assert "numpy" in verify(s, args).oracles


def stored(m, n, k, layout, batch=None, dtype="float32"):
    """A product whose operands are stored as a layout says, in stacks if there is a batch."""
    lead = () if batch is None else (batch,)
    shapes = {"A": {"N": (m, k), "T": (k, m)}, "B": {"N": (k, n), "T": (n, k)}}
    A, B = (
        te.placeholder((*lead, *shapes[name][letter]), dtype, name=name)
        for name, letter in zip("AB", layout, strict=True)
    )
    r = te.reduce_axis((0, k), name="k")

    def element(*indices):
        *stack, i, j = indices
        places = {"A": {"N": (i, r), "T": (r, i)}, "B": {"N": (r, j), "T": (j, r)}}
        return te.sum(
            A[(*stack, *places["A"][layout[0]])] * B[(*stack, *places["B"][layout[1]])], axis=r
        )

    body = (lambda i, j: element(i, j)) if batch is None else (lambda b, i, j: element(b, i, j))
    return A, B, te.compute((*lead, m, n), body, name="C")


@pytest.mark.campaign
@pytest.mark.parametrize("batch", [None, 3])
@pytest.mark.parametrize("layout", ["NN", "NT", "TN", "TT"])
def test_transposed_operands_and_stacks(layout, batch):
    item = MATMUL if batch is None else operator("batch_matmul")
    for m, n, k in ((20, 37, 24), (5, 1, 3), (2, 40, 16)):
        args = stored(m, n, k, layout, batch)
        more = {} if batch is None else {"batch": batch}
        workload = product_of(args[-1])
        assert workload == item.workload(m=m, n=n, k=k, layout=layout, **more)
        s = create_schedule(args[-1].op)
        schedule_product(s, args[-1], item.default_config(workload, X86_64_AVX2), X86_64_AVX2)
        assert "numpy" in verify(s, args).oracles
