"""Write calls of mathematical functions: from the C library, or helper functions."""

from __future__ import annotations

from dlcompiler import dtypes
from dlcompiler.codegen.c.arithmetic import Arithmetic, computed
from dlcompiler.codegen.c.literals import literal
from dlcompiler.codegen.c.text import COMPARE, PRODUCT, Text, conversion, infix
from dlcompiler.errors import InternalError

_CLASSES = ("isnan", "isinf", "isfinite")
_OF_INTEGERS = ("abs", "popcount", "clz")


def call(arithmetic: Arithmetic, name: str, dtype: str, arguments: tuple[Text, ...]) -> Text:
    """Return the call of the function `name`; `dtype` is that of the first argument."""
    if name in ("likely", "assume_bounds"):
        return arguments[0]
    if name in ("to_bits", "from_bits"):
        return _of_bits(arithmetic, name, dtype, arguments[0])
    if not dtypes.is_float(dtype):
        return _of_integers(arithmetic, name, dtype, arguments)
    if name in _CLASSES:
        return Text(f"{name}({arguments[0].text}) != 0", COMPARE)
    if name == "sort_key":
        return arithmetic.helpers.call("sort_key", dtype, *arguments)
    if name == "nextafter" and computed(dtype) != dtype:
        return arithmetic.helpers.call("next", dtype, *arguments)
    return arithmetic.rounded(dtype, _of_floats(arithmetic, name, computed(dtype), arguments))


def _of_bits(arithmetic: Arithmetic, name: str, dtype: str, value: Text) -> Text:
    """Return the bits of a float, or the float with these bits; one of 16 bits is a C float."""
    if dtypes.bits(dtype) > 16:
        return arithmetic.helpers.call(name, dtype, value)
    if name == "from_bits":
        return arithmetic.helpers.call(
            "to_f32", "float16", conversion(arithmetic.dialect.types["uint16"], value)
        )
    bits = arithmetic.helpers.call("from_f32", dtype, value)
    return conversion(arithmetic.dialect.types["int16"], bits)


def _of_integers(
    arithmetic: Arithmetic, name: str, dtype: str, arguments: tuple[Text, ...]
) -> Text:
    if name == "abs" and dtypes.is_unsigned(dtype):
        return arguments[0]
    if name not in _OF_INTEGERS:
        raise InternalError("generate C code", f"unknown function {name} of {dtype}")
    return arithmetic.helpers.call(name, dtype, *arguments)


def _of_floats(arithmetic: Arithmetic, name: str, dtype: str, arguments: tuple[Text, ...]) -> Text:
    if name == "sigmoid":
        return arithmetic.helpers.call("sigmoid", dtype, *arguments)
    if name == "tf32":
        return arithmetic.helpers.call("tf32", dtype, *arguments)
    if name == "rsqrt":
        root = _of_floats(arithmetic, "sqrt", dtype, arguments)
        return infix("/", literal(1.0, dtype), root, PRODUCT)
    if name == "exp10":
        return _of_floats(arithmetic, "pow", dtype, (literal(10.0, dtype), *arguments))
    function = arithmetic.dialect.function(name, dtype)
    if function is None:
        raise InternalError("generate C code", f"unknown function {name}")
    return Text(f"{function}({', '.join(a.text for a in arguments)})")
