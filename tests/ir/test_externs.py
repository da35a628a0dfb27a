"""Declared buffers and calls of code from outside, as a user writes them."""

import pytest

from dlcompiler.errors import ExpressionError, InternalError
from dlcompiler.ir import (
    Call,
    PrimFunc,
    Var,
    call_extern,
    call_packed,
    call_pure_extern,
    decl_buffer,
    format_expr,
    verify_func,
)

A = decl_buffer((4, 5), name="A")
V = decl_buffer((8,), "int32", name="V")
n = Var("n", is_symbol=True)


def test_a_declared_buffer():
    buffer = decl_buffer(
        (n, 8), "int8", name="W", strides=[Var("s", is_symbol=True), 1], scope="local",
        data_alignment=16, offset_factor=8,
    )  # fmt: skip
    assert (buffer.name, buffer.dtype, buffer.scope) == ("W", "int8", "local")
    assert (buffer.shape[0], buffer.strides[1]) == (n, 1)
    assert (buffer.alignment, buffer.offset_factor) == (16, 8)
    assert (A.scope, A.alignment, A.strides, A.offset_factor) == ("global", 64, (5, 1), 0)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"data": Var("p")}, r"data= is not supported"),
        ({"elem_offset": 4}, r"elem_offset= is not supported"),
        ({"buffer_type": "auto_broadcast"}, r"buffer_type= is not supported"),
        ({"strides": [1]}, r"wrong number of strides"),
        ({"data_alignment": 24}, r"data_alignment is not a power of two"),
        ({"offset_factor": -1}, r"offset_factor is no number of elements"),
        ({"dtype": "float32x4"}, r"not the dtype of a buffer"),
    ],
)
def test_what_a_declaration_refuses(options, text):
    with pytest.raises(ExpressionError, match=text):
        decl_buffer((4, 8), **options)


def test_regions():
    assert format_expr(A.access_ptr("r")) == "A[0 : +4, 0 : +5] (r)"
    assert format_expr(A.access_ptr(2)) == "A[0 : +4, 0 : +5] (w)"
    assert format_expr(V.access_ptr("rw", offset=2)) == "V[2 : +6] (rw)"
    assert format_expr(V.access_ptr("rw", offset=n, extent=2)) == "V[n : +2] (rw)"
    assert format_expr(A.region((n, 1), (1, 2), "w")) == "A[n, 1 : +2] (w)"


@pytest.mark.parametrize(
    ("mistake", "text"),
    [
        (lambda: A.access_ptr("x"), "no such access"),
        (lambda: A.access_ptr("r", content_lanes=4), "content_lanes other than 1"),
        (lambda: A.access_ptr("r", offset=5), "is for a buffer of one dimension"),
        (lambda: A.region((0,), (4, 5), "r"), "wrong number of indices"),
        (lambda: A.region((0, 0), (4,), "r"), "wrong number of extents"),
        (lambda: A.region((0, 0), (4, 5), "a"), "no such access"),
        (lambda: A.vload((0, 0), "int32"), "not the dtype of its elements"),
        (lambda: call_packed("", A), "not the name of a function"),
        (lambda: call_packed("f", "text"), "a string cannot be passed"),
        (lambda: call_packed("f", None), "cannot be used in an expression"),
        (lambda: call_packed("f", A.vload((0, 0), "float32x4")), "a vector cannot be passed"),
        (lambda: call_extern("int32", "f", A), "no access is declared for A"),
    ],
)
def test_what_a_call_refuses(mistake, text):
    with pytest.raises(ExpressionError, match=text):
        mistake()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (call_packed("f", A), "does not say what it does with"),
        (call_packed("f", A.access_ptr("w")), "writes A, no output"),
        (call_packed("f", V.access_ptr("r")), "V, which is not allocated here"),
        (call_packed("f", Var("i")), "outside its loop"),
        (call_packed("f", A.access_ptr("r") + 1.0), "stands outside a call"),
    ],
)
def test_what_the_verifier_refuses(call, text):
    with pytest.raises(InternalError, match=text):
        verify_func(PrimFunc("f", (A,), (), call))


def test_functions_of_the_mathematics_library():
    x, y = Var("x", "float32"), Var("y", "float64")
    assert format_expr(call_pure_extern("float32", "expf", x)) == "exp(x)"
    assert format_expr(call_pure_extern("float32", "erff", x)) == "erf(x)"
    assert format_expr(call_pure_extern("float32", "__expf", x)) == "exp(x)"
    assert format_expr(call_pure_extern("float32", "__powf", x, x)) == "pow(x, x)"
    assert format_expr(call_pure_extern("float64", "erf", y)) == "erf(y)"
    assert format_expr(call_pure_extern("float64", "rint", y)) == "round(y)"
    power = call_pure_extern("float64", "pow", y, 2)
    assert isinstance(power, Call)
    assert power.dtype == "float64"
    assert call_pure_extern("float64", "ldexp", y, 3).args[1].dtype == "int32"


@pytest.mark.parametrize(
    ("dtype", "name", "text"),
    [
        ("float64", "__exp", "not a supported function of the C mathematics library"),
        ("float32", "exp", "of float32, with an f behind|not a supported function of the C"),
        # C rounds halves away from 0, the IR to even.
        ("float64", "round", "not a supported function of the C mathematics library"),
        ("int32", "abs", "float32 or float64"),
        ("float32", "powf", "wrong number of arguments"),
    ],
)
def test_other_functions_are_refused(dtype, name, text):
    with pytest.raises(ExpressionError, match=text):
        call_pure_extern(dtype, name, Var("x", "float32"))
