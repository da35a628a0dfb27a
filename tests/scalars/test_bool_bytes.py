"""A bool is a byte: 0 is false, each other byte is true; what is written is 0 or 1."""

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.pipeline import emit_source, lower
from dlcompiler.simulate import interpret
from tests.scalars.agreement import DATA, WAYS, run

BYTES = (0, 1, 2, 3, 127, 128, 254, 255)
COMPARISONS = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
TRUTHS = {
    "copy": lambda a, b: a,
    "not": lambda a, b: te.bitwise_not(a),
    "and": lambda a, b: te.bitwise_and(a, b),
    "or": lambda a, b: te.bitwise_or(a, b),
    "xor": lambda a, b: te.bitwise_xor(a, b),
    "all": lambda a, b: te.all(a, b),
    "any": lambda a, b: te.any(a, b),
    "select": lambda a, b: te.select(a, b, a),
    "chosen": lambda a, b: te.if_then_else(a, b, te.bitwise_not(b)),
    "with_constant": lambda a, b: te.select(a, b, te.const(True, "bool")),
    "as_condition": lambda a, b: te.select(a, te.const(3, "int8"), te.const(5, "int8")),
    "to_bool": lambda a, b: a.astype("int32").astype("bool"),
}
CASTS = {
    f"to_{name}": lambda a, b, name=name: te.select(b, a.astype(name), te.const(1, name))
    for name in DATA
}
SUMS = {
    "counted": lambda a, b: a.astype("int32") + b.astype("int32"),
    "compared": lambda a, b: te.select(a.astype("uint8") == b.astype("uint8"), 1.0, 0.0),
}


def bools(*values):
    """Return an array of bools whose bytes are these."""
    return np.array(values, np.uint8).view(bool)


def _pairs():
    first, second = np.meshgrid(BYTES, BYTES)
    return bools(*first.ravel()), bools(*second.ravel())


@pytest.mark.parametrize("way", ["evaluate", *WAYS])
@pytest.mark.parametrize(
    "functions", [COMPARISONS, TRUTHS, CASTS, SUMS], ids=["comparisons", "truths", "casts", "sums"]
)
def test_any_byte_but_0_is_true(functions, way):
    given = _pairs()
    normal = [array.view(np.uint8) != 0 for array in given]
    A, B = (te.placeholder((len(normal[0]),), "bool", name=name) for name in "AB")
    outputs = [
        te.compute(A.shape, lambda i: function(A[i], B[i]), name=name)  # noqa: B023
        for name, function in functions.items()
    ]
    right = te.evaluate(outputs, {A: normal[0], B: normal[1]})
    if way == "evaluate":
        results = te.evaluate(outputs, {A: given[0], B: given[1]})
    else:
        results = run(way, [A, B], outputs, list(given))
    for name, got, expected in zip(functions, results, right, strict=True):
        assert got.tobytes() == expected.tobytes(), name


def _reductions(A):
    columns = A.shape[1]
    k = [te.reduce_axis((0, columns), name=f"k{n}") for n in range(4)]
    both = te.comm_reducer(te.all, lambda dtype: te.const(True, dtype), name="both")
    either = te.comm_reducer(te.any, lambda dtype: te.const(False, dtype), name="either")
    rows = A.shape[:1]
    return [
        te.compute(rows, lambda i: both(A[i, k[0]], axis=k[0]), name="every"),
        te.compute(rows, lambda i: either(A[i, k[1]], axis=k[1]), name="some"),
        te.compute(rows, lambda i: te.max(A[i, k[2]].astype("uint8"), axis=k[2]), name="largest"),
        te.compute(rows, lambda i: te.sum(A[i, k[3]].astype("float32"), axis=k[3]), name="count"),
    ]


@pytest.mark.parametrize("way", ["evaluate", *WAYS])
def test_reductions(way):
    rows = [(0, 0, 0), (2, 255, 128), (2, 0, 0), (1, 2, 3), (0, 255, 4), (0, 0, 2), (1, 1, 0)]
    given = np.array([*rows, (9, 9, 9)], np.uint8).view(bool)
    A = te.placeholder(given.shape, "bool", name="A")
    outputs = _reductions(A)
    if way == "evaluate":
        results = te.evaluate(outputs, [given])
    else:
        results = run(way, [A], outputs, [given])
    plain = given.view(np.uint8) != 0
    expected = (plain.all(1), plain.any(1), plain.max(1), plain.sum(1))
    for got, right in zip(results, expected, strict=True):
        assert got.tobytes() == right.astype(got.dtype).tobytes()


@pytest.mark.parametrize("target", ["cpu", *(["c"] if "c" in WAYS else [])])
def test_through_temporaries_and_tails(target):
    """A cached copy, a vector cut short, a strided and a gathered read."""
    given = bools(*range(250, 256), *range(37))
    count = len(given)
    A = te.placeholder((count,), "bool", name="A")
    B = te.compute((count,), lambda i: te.bitwise_not(A[count - 1 - i]), name="B")
    C = te.compute((count // 3,), lambda i: te.select(B[3 * i], A[i], B[i]), name="C")
    s = te.create_schedule(C.op)
    cached = s.cache_read(A, "local", [B])
    for stage in (cached, B, C):
        _, inner = s[stage].split(stage.op.axis[0], factor=8)
        s[stage].vectorize(inner)
    out = np.full(count // 3, 77, np.uint8).view(bool)
    dlc.build(s, [A, C], target)(given, out)
    plain = given.view(np.uint8) != 0
    opposite = ~plain[::-1]
    right = np.where(opposite[::3][: len(out)], plain[: len(out)], opposite[: len(out)])
    assert out.tobytes() == right.tobytes()
    interpreted = bools(*[77] * len(out))
    interpret(lower(s, [A, C], simple_mode=True), [given, interpreted])
    assert interpreted.tobytes() == right.tobytes()


def test_an_input_that_is_an_output_of_evaluate_is_written_as_0_and_1():
    A = te.placeholder((4,), "bool", name="A")
    got = te.evaluate(A, [bools(0, 1, 2, 255)])
    assert got.tobytes() == bytes([0, 1, 1, 1])


def test_the_header_says_what_a_bool_is():
    A = te.placeholder((4,), "bool", name="A")
    B = te.compute((4,), lambda i: te.bitwise_not(A[i]), name="B")
    source, _ = emit_source(te.create_schedule(B.op), [A, B], "c", "opposite")
    assert " *   A  bool[4], as bytes of which 0 is false, read\n" in source.named("header")
    assert "int opposite(const uint8_t *A, uint8_t *B);" in source.named("header")
    assert "B[i] = !(A[i] != 0);" in source.text
