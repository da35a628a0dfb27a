"""Notation refused: where the text goes wrong, and that nothing in it is ever executed."""

import builtins

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dlcompiler import te
from dlcompiler.errors import ExpressionError
from dlcompiler.te.notation.reductions import REDUCTIONS
from dlcompiler.te.notation.scan import FUNCTIONS
from tests.share import share_of

A, B = (4, 8), (8, 5)
N = ((4, 8), "int8")


def _refused(text, **declarations):
    with pytest.raises(ExpressionError) as error:
        te.notation(text, **declarations)
    return str(error.value)


def test_disagreeing_extents():
    assert _refused("C[i, j] += A[i, k] * B[k, j]", A=A, B=(9, 5)) == (
        "te.notation: the extents of the axis k disagree\n"
        "  got       9 in dimension 0 of B\n"
        "  expected  8, as in dimension 1 of A\n"
        "  hint      to use only a part, give the extent: te.notation(…, k=n)\n"
        "  excerpt   C[i, j] += A[i, k] * B[k, j]\n"
        "                                   ^"
    )


def test_an_unknown_extent():
    assert _refused("C[i] = A[i + 1, 0]", A=A) == (
        "te.notation: the extent of the axis i is not known\n"
        "  hint      give it: te.notation(…, i=n)\n"
        "  excerpt   C[i] = A[i + 1, 0]\n"
        "              ^"
    )


@pytest.mark.parametrize("text", ["1 // 0", "n % 0"])
def test_an_extent_that_divides_by_0(text):
    refused = _refused("C[i] = A[i]", A=((text,), "float32"))
    assert f"an extent divides by 0\n  got       '{text}'" in refused


def test_an_unknown_tensor():
    assert _refused("C[i, j] += A[i, k] * B[k, j]", A=A) == (
        "te.notation: B is not declared\n"
        '  hint      declare it: te.notation(…, B=((…), "float32")), or a Tensor\n'
        "  excerpt   C[i, j] += A[i, k] * B[k, j]\n"
        "                                 ^"
    )


def test_errors_of_the_language_point_at_their_place():
    assert _refused("C[i, j] = A[i, j] + 300", A=N) == (
        "literal 300: does not fit int8\n"
        "  got       300\n"
        "  expected  -128 to 127\n"
        "  hint      cast the other operand to a wider type with .astype(…)\n"
        "  excerpt   C[i, j] = A[i, j] + 300\n"
        "                              ^"
    )


def test_a_caret_in_a_long_line():
    text = "C[i, j] = " + " + ".join(["A[i, j]"] * 30) + " + bad(i)" + " + A[i, j]" * 10
    (*_, line, caret) = _refused(text, A=A).splitlines()
    assert line[caret.index("^") :].startswith("bad(i)")
    assert len(line) <= 100


def test_a_caret_below_wide_text_and_later_lines():
    (*_, line, caret) = _refused("é[i] = (A[i, 0] +\n  ßß(i))", A=A).splitlines()
    assert line[caret.index("^") :] == "ßß(i))"


# text -> (part of the problem, what the caret points at; None where there is no place)
HOSTILE = {
    "C[i] = __import__('os').system('id')": ("an attribute", ".system"),
    "C[i] = open(A[i, 0])": ("unknown function 'open'", "open"),
    "C[i] = eval('1')": ("unknown function 'eval'", "eval"),
    "C[i] = A.shape": ("an attribute", ".shape"),
    "C[i] = A[i, 0].op": ("an attribute", ".op"),
    "C[i] = A.op[i]": ("an attribute", ".op[i]"),
    "C.x[i] = A[i, 0]": ("the left side is not an element", "C.x"),
    "C[i] = (lambda: 1)()": ("a lambda", "lambda"),
    "C[i] = lambda: 1": ("a lambda", "lambda"),
    "C[i] = [A[i, 0]]": ("a list", "[A"),
    "C[i] = [x for x in A]": ("a comprehension", "[x"),
    "C[i] = {x for x in A}": ("a comprehension", "{x"),
    "C[i] = {x: x for x in A}": ("a comprehension", "{x"),
    "C[i] = sum(A[i, k] for k in B)": ("sum needs axes", "sum"),
    "C[i] = exp(x for x in A)": ("a comprehension", "(x for"),
    "C[i] = {}": ("a dict", "{}"),
    "C[i] = {1}": ("a set", "{1}"),
    "C[i] = (1, 2)": ("a tuple", "(1"),
    "C[i] = ()": ("a tuple", "()"),
    "C[i] = 'text'": ("a string", "'text'"),
    "C[i] = b'text'": ("a string", "b'text'"),
    "C[i] = f'{A}'": ("a string", "f'{A}'"),
    "C[i] = None": ("None is not a number", "None"),
    "C[i] = ...": ("Ellipsis is not a number", "..."),
    "C[i] = 1j": ("1j is not a number", "1j"),
    "C[i] = 1e999": ("the number is too large", "1e999"),
    "C[i] = 99999999999999999999": ("does not fit 64 bits", "9999"),
    "C[i] = 2 * 9999999999999999999": ("does not fit 64 bits", "* 99"),
    "C[i] = 1e308 * 10": ("the number is too large", "* 10"),
    "C[i] = 1 / 0": ("division by zero", "/ 0"),
    "C[i] = 1 % 0": ("division by zero", "% 0"),
    "C[i] = (x := 1)": ("an assignment inside an expression", "x := 1"),
    "C[i] = exp(*A)": ("a starred argument", "*A"),
    "C[i] = exp(**A)": ("takes no named argument", "**A"),
    "C[i] = exp(x=1)": ("takes no named argument", "x=1"),
    "C[i] = sum(A[i, k], axis=k, y=1)": ("an argument that is not understood", "y=1"),
    "C[i] = sum(A[i, k], where=k)": ("sum needs axes to reduce over", "sum("),
    "C[i] = sum(A[i, k], axis='k')": ("sum reduces over axes", "'k'"),
    "C[i] = max(A[i, k], axis=k + 1)": ("max reduces over axes", "+ 1"),
    "C[i] = max(A[i, k], axis=i)": ("the axis i is on the left", "i)"),
    "C[i] = sum(A[i, k], axis=[k, k])": ("needs axes to reduce over, each once", "sum"),
    "C[i] = sum(A[i, k])": ("sum needs axes", "sum"),
    "C[i] = max(A[i, k])": ("max needs axes", "max"),
    "C[i] = 1 + sum(A[i, k], k)": ("the sum stands inside another expression", "sum"),
    "C[i] = 1 + max(A[i, 0], 1, 2)": ("stands inside another expression", "max"),
    "C[i] = exp(1, 2)": ("exp takes 1 argument", "exp"),
    "C[i] = pow(A[i, 0])": ("pow takes 2 arguments", "pow"),
    "C[i] = int8(1, 2)": ("int8 takes 1 argument", "int8"),
    "C[i] = float32x4(1)": ("unknown function 'float32x4'", "float32x4"),
    "C[i] = A[i, 0] @ 2": ("not an operator of the notation", "@ 2"),
    "C[i] = 9 ** 99999999999": ("the number is too large", "**"),
    "C[i] = 9.0 ** 99999999999": ("the number is too large", "**"),
    "C[i] = (-8) ** 0.5": ("the power is not a real number", "**"),
    "C[i] = 0 ** -1": ("division by zero", "**"),
    "C[i] = 1 << 99999999999": ("a shift by a number outside 0 to 64", "<<"),
    "C[i] = 1.5 & 1": ("bit operations take integers", "&"),
    "C[i] = ~1.5": ("'~' takes an integer or a condition", "~"),
    "C[i] = (A[i, 0] + 1) @ 2": ("not an operator", "@ 2"),
    "C[i] = A[i << i, 0]": ("shift of an index", "<<"),
    "C[i] = ~A[i, 0]": ("~ of a float: defined for integers only", "~"),
    "C[i] = i is 3": ("not a comparison", "i is"),
    "C[i] = i in A": ("not a comparison", "i in"),
    "C[i] = A[i, :]": ("a slice", ":"),
    "C[i] = A[i, 1:2]": ("a slice", "1:2"),
    "C[i] = A[i][0]": ("only a name can be called or indexed", "A[i][0]"),
    "C[i] = A(i, 0)(1)": ("unknown function 'A'", "A(i"),
    "C[i] = await A": ("await", "await"),
    "C[i] = A": ("if A is a tensor, index it", "A"),
    "C[i] = A[i, 0] + A": ("A is a tensor", "A"),
    "C[i] = A[i]": ("A has 2 dimensions", "A[i]"),
    "C[i] = A[i, 0] + C[i]": ("C is defined by this statement", "C[i]"),
    "C[i] = A[i, k]": ("the axis k is not on the left", "k]"),
    "C[i] += A[i, 0]": ("adds up over axes that are not on the left", "C[i]"),
    "C[i] -= A[i, 0]": ("only '=' and '+=' are understood", "C[i]"),
    "C[i] = A[i, 0] if 1 < 2 if i else 3": ("not readable", None),
    "C[i]: int = A[i, 0]": ("not an assignment", "C[i]"),
    "C[i] = D[i] = A[i, 0]": ("not an assignment", "C[i]"),
    "C = A[0, 0]": ("the left side is not an element", "C"),
    "C[i], D[i] = A[i, 0]": ("the number of results differs", "C[i]"),
    "C[i], D[j] = A[i, 0], 1": ("D has other axes than C", "D[j]"),
    "C[i], C[i] = A[i, 0], 1": ("C stands twice on the left", "C[i] ="),
    "C[i], D = A[i, 0], 1": ("the left side is not an element", "D ="),
    "C[i], D[i] += A[i, k]": ("not readable", None),
    "C[i] = argmax(A[i, k], axis=k)": ("the number of results differs", "C[i]"),
    "C[i], D[i] = argmax(A[i, k], axis=k, where=i < 1)": ("not understood", "where"),
    "C[i], D[i] = argmax(A[i, k], k, k)": ("each once", "argmax"),
    "C[i] = prod(A[i, k])": ("prod needs axes", "prod"),
    "C[i] = 1 + argmin(A[i, k], axis=k)": ("the argmin stands inside", "argmin"),
    "C[i] = sum(A[i, k], axis=k, where=A[i, k])": ("the condition is not a bool", "A[i, k], axis"),
    "C[i] = sum(A[i, k], axis=k, init=A[i, k])": ("cannot depend on k", "k])"),
    "C[i] = sum(A[i, k], axis=k, init=(1, 2))": ("wrong number of values", "A[i, k]"),
    "C[i] = sum(A[i, k], axis=k, **A)": ("not understood", "**A"),
    "D[i] = C[i]; C[i] = A[i, 0]": ("C is defined by a later statement", "C[i]; "),
    "C[i] = A[i, 0]; D[i] = C[i, 0]": ("C has 1 dimension", "C[i, 0]"),
    "C[i] = A[i, 0]\nimport os": ("not an assignment", "import os"),
    "C[i, i] = A[i, 0]": ("the axis i stands twice", "i]"),
    "C[i + 1] = A[i, 0]": ("must be the name of an axis", "+ 1"),
    "C[0] = A[0, 0]": ("must be the name of an axis", "0]"),
    "C[C] = A[0, 0]": ("must be the name of an axis", "C]"),
    "C[inf] = A[0, 0]": ("must be the name of an axis", "inf"),
    "C[i:3] = A[0, 0]": ("must be the name of an axis", "i:3"),
    "import os": ("not an assignment", "import"),
    "def f(): pass": ("not an assignment", "def"),
    "print(A)": ("not an assignment", "print"),
    "del A": ("not an assignment", "del"),
    "C[i] = 1; C[i] = 2": ("C is defined twice", "C[i] = 2"),
    "": ("no statement", None),
    "# nothing": ("no statement", None),
    "C[i] = (A[i, 0]": ("not readable: '(' was never closed", "(A"),
    "C[i] = A[i, 0]]": ("not readable: unmatched ']'", None),
    "C[i] = (A[i, 0)]": ("not readable: '[' is closed by ')'", None),
    "C[i] = 1 +": ("not readable: something is missing before this place", None),
    "C[i] := 1": ("not readable: something is missing before this place", None),
    "C[i] = 0b12": ("not readable: this is not a number", None),
    "C[i] = 1A[i, 0]": ("not readable: this is not a number", None),
    "C[i] = 007": ("not readable: this is not a number", None),
    "C[i] = 'a": ("not readable: the closing quote is missing", None),
    "C[i] = A[i, 0]\0": ("not readable: there is a null character in the text", None),
    "C[i] = \ud800": ("not readable: there is half of a character in the text", None),
    "C[i] = " + "9" * 5000: ("not readable: a number has too many digits", None),
    "C[i] = A[i, 0] and 1": ("the condition is not a bool", "A[i, 0] and"),
    "C[i] = not A[i, 0]": ("the condition is not a bool", "not A"),
    "C[i] = A[i, 0] if i else 1": ("the condition is not a bool", "A[i, 0] if"),
    "C[i] = (i < 1) + (i < 2)": ("arithmetic on bool", "+ (i"),
    "C[i] = A[i, 0.5]": ("an index must be an integer", "A[i, 0.5]"),
    "C[i] = A[i, True]": ("an index must be an integer", "A[i, True]"),
    "C[i] = A[i, 9]": ("lies outside A", None),
    "C[i] = A[i, 0] // 2": ("defined for integers only", "// 2"),
    "C[i] += i < 3": ("adds up over axes", "C"),
}


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text(text):
    problem, pointed = HOSTILE[text]
    message = _refused(text, i=4, **({"A": A} if "A" in text else {}))
    assert problem in message
    if pointed is not None:
        *_, line, caret = message.splitlines()
        assert line[caret.index("^") :].startswith(pointed), message


DEEP = {
    "parentheses": "(" * 3000 + "A[i, 0]" + ")" * 3000,
    "beyond the limit of length": "(" * 10_000 + "A[i, 0]" + ")" * 10_000,
    "signs": "-" * 9_000 + "A[i, 0]",
    "not": "not " * 2_000 + "A[i, 0]",
    "calls": "exp(" * 190 + "A[i, 0]" + ")" * 190,
    "more calls": "exp(" * 1900 + "A[i, 0]" + ")" * 1900,
    "sums": "A[i, 0]" + "+1" * 2000,
    "indices": "A[" * 190 + "0" + "]" * 190,
    "choices": "A[i, 0] if i < 1 else " * 300 + "0",
    "lambdas": "lambda: " * 1000 + "0",
    "attributes": "A" + ".x" * 4000,
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_text(name):
    message = _refused(f"C[i] = {DEEP[name]}", A=A)
    assert any(
        part in message
        for part in ("nested too deeply", "too long", "too many nested parentheses", "not readable")
    ), message


DECLARATIONS = {
    "te.notation: not a text": (5, {}),
    "te.notation: Z is declared, but does not occur in the text": (
        "C[i] = A[i, 0]",
        {"A": A, "Z": 3},
    ),
    "te.notation, A: not a shape": ("C[i] = A[i, 0]", {"A": 5}),
    "te.notation, A: an extent must be an integer": ("C[i] = A[i, 0]", {"A": (4, 0.5)}),
    "te.notation, A: an extent must not be negative": ("C[i] = A[i, 0]", {"A": (4, -1)}),
    "read a dtype: not the name of a data type": ("C[i] = A[i, 0]", {"A": (A, "float")}),
    "te.placeholder A: not the dtype of a tensor": ("C[i] = A[i, 0]", {"A": (A, "index")}),
    "te.notation, i: not the domain of an axis": ("C[i] = A[i, 0]", {"A": A, "i": {4}}),
    "te.notation, i: an extent must be an integer": ("C[i] = A[i, 0]", {"A": A, "i": True}),
    "te.notation, k: the domain ends before it starts": ("C[i] += A[i, k]", {"A": A, "k": (3, 2)}),
    "te.notation: the axis i is on the left, and must start at 0": (
        "C[i] = A[i, 0]",
        {"A": A, "i": (1, 3)},
    ),
    "te.notation: the axis i goes beyond A": ("C[i] = A[i, 0]", {"A": A, "i": 5}),
    "te.notation: the axis k goes beyond A": ("C[i] += A[i, k]", {"A": A, "k": (-1, 3)}),
    "te.notation: the axis i is declared twice": (
        "C[i] = A[i, 0]",
        {"A": A, "i": 3, "C": ((4,), "float32")},
    ),
    "te.notation: C is declared with 2 dimensions": ("C[i] = A[i, 0]", {"A": A, "C": (4, 4)}),
    "te.notation: the declared dtype of C differs from its dtype": (
        "C[i, j] = A[i, j] * A[i, j]",
        {"A": N, "C": ((4, 8), "int32")},
    ),
    "te.notation, C: not a shape": (
        "C[i] = A[i, 0]",
        {"A": A, "C": te.placeholder((4,), name="C")},
    ),
}


EXTENTS = (
    "", "n +", "n.x", "f(n)", "n[0]", "n / 2", "'n'", "1.5", "(" * 99, "n" + "+n" * 200, "True",
    "min(n)", "lambda: n", "__import__('os')", "n if n else 1", "min(n, 1, 2)", "-" * 90 + "n",
)  # fmt: skip


@pytest.mark.parametrize("text", EXTENTS)
def test_extents_that_are_no_formula(text):
    assert "not an extent" in _refused("C[i] = A[i]", A=((text,), "float32"))
    assert "not an extent" in _refused("C[i] = 1", i=text)


NUMBERS = {
    "A is a number, not a tensor": ("C[i] = A[i]", {"A": "float32"}),
    "n is a number given to the program": ("C[n] = A[n]", {"A": ("n",)}),
    "the domain starts at a symbol": ("C[i] += A[i, k]", {"A": (4, "n"), "k": ("n", 9)}),
    "a is declared, but does not occur": ("C[i] = A[i, 0]", {"A": A, "a": ((3,), "int8")}),
    "the extents of the axis i disagree": ("C[i] = A[i] + B[i]", {"A": ("n",), "B": ("m",)}),
    "not an extent": ("C[i] = A[i]", {"A": ("n", "float32")}),
    "a number of this dtype cannot be passed to a kernel": ("C[i] = a", {"a": "float16", "i": 3}),
}


@pytest.mark.parametrize("problem", NUMBERS)
def test_numbers_and_symbols_in_the_wrong_place(problem):
    text, declarations = NUMBERS[problem]
    assert problem in _refused(text, **declarations)


@pytest.mark.parametrize("problem", DECLARATIONS)
def test_declarations_that_do_not_fit(problem):
    text, declarations = DECLARATIONS[problem]
    assert _refused(text, **declarations).splitlines()[0] == problem


@given(st.text(max_size=60))
@settings(max_examples=share_of(200))
def test_any_text_is_read_or_refused(text):
    try:
        te.notation(text, A=A)
    except ExpressionError as error:
        _ = str(error)


PIECES = [
    "A[i, j]", "A[i, k]", "B[k]", "i", "j", "k", "0", "1.5", "+", "-", "*", "//", "(", ")", "<",
    " if ", " else ", " and ", " not ", "max(", "exp(", "sum(", ", ", "axis=k", ".x", "[", "]",
    "'", "lambda: ", ":=", "=", "inf", "int8(", "True", "; ", "D[i, j] = ", "where=", "init=",
    "prod(", "argmax(", "n", "C[i, j]", "n * i",
]  # fmt: skip


@given(st.sampled_from(["=", "+="]), st.lists(st.sampled_from(PIECES), max_size=9))
@settings(max_examples=share_of(400))
@example("=", ["A[i, j]", "+", "A[i, k]"])
def test_any_pieces_are_read_or_refused(sign, pieces):
    try:
        C = te.notation(
            f"C[i, j] {sign} {''.join(pieces)}", A=(3, 3), B=(3,), i=3, j=3, k=3, n="index"
        )
    except ExpressionError as error:
        _ = str(error)
        return
    for tensor in C if isinstance(C, tuple) else (C,):
        assert tensor.shape == (3, 3)


def test_nothing_of_the_language_is_reached_by_other_names():
    for name, value in {**vars(builtins), **vars(te)}.items():
        if callable(value) and name not in {*FUNCTIONS, *REDUCTIONS, "bool"}:
            assert "unknown function" in _refused(f"C[i] = {name}(A[i, 0])", A=A)
