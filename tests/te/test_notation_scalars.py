"""Every operator and function is read from notation, and written as text that reads back."""

import numpy as np
import pytest

from dlcompiler import dtypes, te
from dlcompiler.ir import structural_equal, substitute
from dlcompiler.ir.functions import FUNCTIONS
from dlcompiler.te.notation.scan import FUNCTIONS as WORDS

SHAPE = (5,)
F = {
    name: te.placeholder(SHAPE, name, name="F") for name in dtypes.SCALARS if dtypes.is_float(name)
}
N = te.placeholder(SHAPE, "int16", name="N")
U = te.placeholder(SHAPE, "uint8", name="U")
G = te.placeholder(SHAPE, "float32", name="G")
B = te.placeholder(SHAPE, "bool", name="B")


def _reads_back(tensor):
    text = te.notation_text(tensor)
    again = te.notation(text, **{x.name: x for x in tensor.op.input_tensors}, i=SHAPE[0])
    assert te.notation_text(again) == text
    (x,), (y,) = tensor.op.axis, again.op.axis
    (body,), (other,) = again.op.bodies, tensor.op.bodies
    assert structural_equal(substitute(body, {y.var: x.var}), other), text
    return text


def _compute(make):
    return te.compute(SHAPE, lambda i: make(i), name="C")


EXPRESSIONS = {
    "N[i] & 7 | N[i] ^ int16(3)": lambda i: N[i] & 7 | (N[i] ^ 3),
    "~N[i]": lambda i: ~N[i],
    "~(U[i] | 1)": lambda i: ~(U[i] | 1),
    "N[i] << 2 >> N[i]": lambda i: N[i] << 2 >> N[i],
    "(N[i] << 2) + 1": lambda i: (N[i] << 2) + 1,
    "N[i] << N[i] + 2": lambda i: N[i] << (N[i] + 2),
    "N[i] & 3 == 1 and B[i]": lambda i: te.all((N[i] & 3) == 1, B[i]),
    "not B[i]": lambda i: ~B[i],
    "pow(G[i], 2.0)": lambda i: G[i] ** 2.0,
    "G[i]*G[i]": lambda i: G[i] ** 2,
    "pow(2.0, G[i])": lambda i: 2 ** G[i],
    "atan2(G[i], 1.0)": lambda i: te.atan2(G[i], 1),
    "copysign(1.0, G[i])": lambda i: te.copysign(1.0, G[i]),
    "ldexp(G[i], 3)": lambda i: te.ldexp(G[i], 3),
    "ldexp(G[i], int32(N[i]))": lambda i: te.ldexp(G[i], N[i]),
    "G[i] if likely(isnan(G[i])) else inf": lambda i: te.if_then_else(
        te.likely(te.isnan(G[i])), G[i], te.infinity("float32")
    ),
    "clz(U[i]) + int32(popcount(U[i]))": lambda i: te.clz(U[i]) + te.popcount(U[i]),
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions(text):
    assert _reads_back(_compute(EXPRESSIONS[text])).split(" = ", 1)[1] == text.replace(
        "int16(3)", "3"
    )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    signature = FUNCTIONS[name]
    function = te.power if name == "pow" else getattr(te, name)
    if name == "likely":
        argument_sets = [[lambda i: B[i]]]
    elif signature.domain == "index":
        argument_sets = [[lambda i: i], [lambda i: N[i]]]
    elif signature.domain == "bits":
        argument_sets = [[lambda i: N[i]]]
    elif signature.domain == "integer":
        argument_sets = [[lambda i, x=x: x[i]] for x in (N, U)]
    else:
        argument_sets = [
            [lambda i, x=x: x[i]] + ([lambda i, x=x: x[i] * 2] if signature.arity == 2 else [])
            for x in F.values()
            if signature.domain != "float32" or x.dtype != "float64"
        ]
    for arguments in argument_sets:
        if name == "ldexp":
            arguments = [arguments[0], lambda i: N[i].astype("int32")]
        assert name in _reads_back(_compute(lambda i: function(*(a(i) for a in arguments))))  # noqa: B023


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("N[i] ** 3", lambda x, y: x**3), ("G[i] ** 2", lambda x, y: y**2),
        ("G[i] ** 0.5", lambda x, y: y**0.5), ("2 ** 3 ** 2 + N[i]", lambda x, y: 512 + x),
        ("(1 << 4 | 3) ^ N[i]", lambda x, y: 19 ^ x), ("+N[i]", lambda x, y: +x),
        ("~5 & N[i]", lambda x, y: ~5 & x), ("abs(N[i])", lambda x, y: np.abs(x)),
        ("nearbyint(G[i])", lambda x, y: np.rint(y)), ("ceildiv(N[i], 3)", lambda x, y: -(-x // 3)),
        ("div(N[i], 2)", lambda x, y: np.trunc(x / 2).astype("int16")),
        ("N[i // 2 << 1 & 3]", lambda x, y: x[np.arange(5) // 2 * 2 % 4]),
    ],
)  # fmt: skip
def test_text_is_read_as_python_reads_it(text, function):
    tensors = {"N": N, "G": G}
    C = te.notation(
        f"C[i] = {text}", **{name: x for name, x in tensors.items() if name in text}, i=5
    )
    n = np.array([-7, 0, 3, 5, 12], "int16")
    g = np.array([0.25, 1.5, 2.5, 3, 4], "float32")
    got = te.evaluate(C, {x: {"N": n, "G": g}[x.name] for x in C.op.input_tensors})
    np.testing.assert_allclose(got, function(n, g), rtol=1e-6)


def test_each_function_of_the_ir_has_a_word():
    assert set(FUNCTIONS) <= set(WORDS)


def test_conditions_join_by_bit_operators():
    C = te.notation("C[i] = G[i] if (i > 1) & (i < 3) else 0.0", G=G)
    same = _compute(lambda i: te.if_then_else(te.all(i > 1, i < 3), G[i], 0.0))
    assert te.notation_text(C) == te.notation_text(same)
