"""Operators written by others compute the same; sums of small integers are exact in any order."""

import random

import numpy as np
import pytest

from dlcompiler.graph import ANY, build, evaluate, op, var
from dlcompiler.graph.inference import types_of
from dlcompiler.graph.ir import Constant, Module
from dlcompiler.graph.passes import decompose_ops, sink_reshapes
from dlcompiler.graph.passes.decompose import RULES
from dlcompiler.graph.passes.tools import operator_of
from tests.graph.random_graphs import flat


def integers(shape, dtype, seed=0):
    found = np.random.default_rng(seed).integers(-4, 5, shape)
    return np.abs(found).astype(dtype) if dtype.startswith("u") else found.astype(dtype)


def check(body, inputs, names, *, compiled=False):
    """Compare a graph before and after the pass, and its machine code if asked; return the pass's.

    `names` are the operators that must be gone.
    """
    module = Module.from_expr(body)
    after = sink_reshapes(decompose_ops(module))
    left = {operator_of(node) for node in after.nodes()}
    assert not left & set(names), left
    expected, found = flat(evaluate(module, *inputs)), flat(evaluate(after, *inputs))
    assert types_of(after)[after.main.body] == types_of(module)[module.main.body]
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_array_equal(a, b)
    if compiled:
        for a, b in zip(expected, flat(build(module)(*inputs)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)
    return after


LAYOUTS = {
    1: [("NCW", "OIW"), ("NWC", "WIO"), ("NCW", "WIO")],
    2: [("NCHW", "OIHW"), ("NHWC", "HWIO")],
    3: [("NCDHW", "OIDHW"), ("NDHWC", "DHWIO")],
}
SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def a_convolution(seed, rank, *, is_transposed):
    """Return a random convolution and its arrays."""
    draw = random.Random(f"{seed} {rank} {is_transposed}")
    groups = 1 if rank == 3 and not is_transposed else draw.choice((1, 1, 2, 3))
    inner, outer = (groups * draw.randint(1, 3) for _ in range(2))
    letters = SPATIAL[rank]
    kernel = [draw.randint(1, 4) for _ in letters]
    strides = [draw.randint(1, 3) for _ in letters]
    dilation = [1 if is_transposed else draw.randint(1, 2) for _ in letters]
    sizes = [draw.randint(k * d, k * d + 5) for k, d in zip(kernel, dilation, strict=True)]
    pads = [draw.randint(0, max(0, (k - 1) // 2)) for _ in range(2) for k in kernel]
    layout, stored = draw.choice(LAYOUTS[rank])
    extents = {"N": draw.randint(1, 2), "C": inner, **dict(zip(letters, sizes, strict=True))}
    weights = {"O": outer, "I": inner, **dict(zip(letters, kernel, strict=True))}
    weights["O" if is_transposed else "I"] //= groups
    attrs = {
        "strides": strides, "padding": pads, "groups": groups,
        "data_layout": layout, "kernel_layout": stored, "dilation": dilation,
    }  # fmt: skip
    if is_transposed:
        attrs["output_padding"] = [draw.randint(0, s - 1) for s in strides]
    dtype = draw.choice(("float32", "float64", "float16", "int32", "int8", "uint8"))
    x = integers([extents[letter] for letter in layout], dtype, seed)
    w = integers([weights[letter] for letter in stored], dtype, seed + 1)
    name = f"conv{rank}d_transpose" if is_transposed else f"conv{rank}d"
    body = getattr(op.nn, name)(var("x", x.shape, dtype), Constant(w), **attrs)
    return body, x, f"nn.{name}"


@pytest.mark.parametrize("is_transposed", [False, True])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolutions(rank, is_transposed):
    if rank == 2 and not is_transposed:
        pytest.skip("it is what the others become")
    for seed in range(30):
        body, x, name = a_convolution(seed, rank, is_transposed=is_transposed)
        check(body, [x], [name], compiled=seed < 3)


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(8))
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_compiled_convolutions(rank, part):
    for seed in range(100 + part * 5, 105 + part * 5):
        for is_transposed in (False, True):
            body, x, name = a_convolution(seed, rank, is_transposed=is_transposed)
            names = [] if name == "nn.conv2d" else [name]
            check(body, [x], names, compiled=x.dtype != np.float16)


def test_a_dilated_transposed_convolution_stays():
    x = var("x", (1, 2, 5, 5), "float32")
    w = Constant(integers((2, 3, 3, 3), "float32"))
    module = Module.from_expr(op.nn.conv2d_transpose(x, w, dilation=(2, 2), strides=(2, 2)))
    assert decompose_ops(module) is module


@pytest.mark.parametrize("is_constant", [False, True])
@pytest.mark.parametrize("turn", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((5, 3), (3, 4)), ((2, 5, 3), (3, 4)), ((2, 1, 5, 3), (1, 3, 3, 4)), ((5, 3), (2, 3, 4)),
        ((2, 5, 3), (2, 3, 4)), ((1, 5, 3), (2, 3, 4)), ((1, 1, 1), (1, 1)),
    ],
)  # fmt: skip
def test_products(a, b, turn, is_constant):
    shapes = [(*s[:-2], s[-1], s[-2]) if t else s for s, t in zip((a, b), turn, strict=True)]
    x, y = (integers(shape, "float32", n) for n, shape in enumerate(shapes))
    second = Constant(y) if is_constant else var("y", y.shape, "float32")
    body = op.nn.matmul(
        var("x", x.shape, "float32"), second, transpose_a=turn[0], transpose_b=turn[1]
    )
    inputs = [x] if is_constant else [x, y]
    after = check(body, inputs, [], compiled=turn == (False, False))
    is_packed = is_constant and len(b) == 2 and not turn[0]
    assert ("nn.dense" in {operator_of(node) for node in after.nodes()}) == is_packed


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 1, 4, 3), (0, 2, 3)])
def test_dense_layers(shape):
    x = integers(shape, "float32")
    body = op.nn.dense(var("x", shape, "float32"), Constant(integers((5, 3), "float32")))
    check(body, [x], [], compiled=0 not in shape)


@pytest.mark.parametrize(
    ("equation", "shapes", "is_written"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)], True),
        ("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)], True),
        ("bhid,bhjd->bhij", [(2, 3, 4, 5), (2, 3, 6, 5)], True),
        ("bihd,bjhd->bhij", [(2, 4, 3, 5), (2, 6, 3, 5)], True),
        ("...ij,...kj", [(2, 3, 4), (2, 5, 4)], True),
        ("iab,jab->ji", [(2, 3, 4), (5, 3, 4)], True),
        ("i,i->", [(4,), (4,)], True),
        ("bi,bi->b", [(2, 4), (2, 4)], True),
        ("ii,ij->j", [(3, 3), (3, 4)], False),
        ("ij,kl->ijkl", [(2, 3), (4, 5)], False),
        ("ij,jk->k", [(2, 3), (3, 4)], False),
        ("...i,...i->...", [(1, 4), (3, 4)], False),
        ("ij->ji", [(2, 3)], False),
    ],
)
def test_sums_of_products(equation, shapes, is_written):
    arrays = [integers(shape, "float32", n) for n, shape in enumerate(shapes)]
    variables = [var(f"x{n}", shape, "float32") for n, shape in enumerate(shapes)]
    names = ["einsum"] if is_written else []
    after = check(op.einsum(variables, equation=equation), arrays, names, compiled=is_written)
    assert ("einsum" in {operator_of(node) for node in after.nodes()}) != is_written


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("layout", ["NCW", "NWC"])
@pytest.mark.parametrize("more", [{}, {"ceil_mode": True}, {"dilation": (2,)}])
def test_pooling_along_rows(kind, layout, more):
    x = integers((2, 3, 11) if layout == "NCW" else (2, 11, 3), "float32")
    pool = getattr(op.nn, f"{kind}_pool1d")
    body = pool(var("x", x.shape, "float32"), pool_size=(3,), strides=(2,), padding=(1, 0),
                layout=layout, **more)  # fmt: skip
    check(body, [x], [f"nn.{kind}_pool1d"], compiled=True)


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize(
    ("sizes", "wanted", "is_written"),
    [((6, 8), (3, 2), True), ((6, 8), (1, 1), True), ((6, 8), (4, 2), False), ((8,), (2,), True),
     ((4, 6, 2), (2, 3, 2), True)],
)  # fmt: skip
def test_pooling_to_extents(kind, sizes, wanted, is_written):
    x = integers((2, 3, *sizes), "float32")
    name = f"adaptive_{kind}_pool{len(sizes)}d"
    body = getattr(op.nn, name)(var("x", x.shape, "float32"), output_size=wanted)
    check(body, [x], [f"nn.{name}"] if is_written else [], compiled=True)


def test_a_call_keeps_its_name_and_the_log_gives_a_reason():
    x, w = var("x", (1, 2, 8), "float32"), Constant(integers((3, 2, 3), "float32"))
    after = decompose_ops(Module.from_expr(op.nn.conv1d(x, w, name="stem")))
    assert after.main.body.name == "stem"
    (decision,) = after.log
    assert decision.subject == ("stem",)
    assert decision.reason == "rows are images of height 1"


def test_sizes_that_are_not_known_and_blocks_are_left():
    x = var("x", (ANY, 3, 4), "float32")
    module = Module.from_expr(op.nn.dense(x, Constant(integers((5, 4), "float32"))))
    assert decompose_ops(module) is module
    y = var("y", (1, 1, 8, 4), "float32")
    w = Constant(integers((3, 4, 3), "float32"))
    module = Module.from_expr(op.nn.conv1d(y, w, data_layout="NCW4c", out_layout="NCW"))
    assert decompose_ops(module) is module


def test_every_rule_is_for_an_operator():
    from dlcompiler.graph.operators import REGISTRY

    assert set(RULES) <= set(REGISTRY)
