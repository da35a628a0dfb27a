"""Table of the functions of the language: names, dtypes, and names in NumPy and in C.

=============================== ================================================================
functions                       meaning, on the dtype of the (first) argument
=============================== ================================================================
exp exp2 exp10 log log2 log10   of floats; results are within 4 units in the last place, those of
log1p pow sqrt rsqrt sin cos    float16 and bfloat16 are computed in float32 and rounded. `sqrt` is
tan asin acos atan atan2 sinh   rounded once. Outside a function's domain it is NaN.
cosh tanh asinh acosh atanh
erf sigmoid hypot
abs floor ceil trunc round      of floats; exact. `round` takes halves to the even neighbour.
copysign fmod ldexp nextafter   `fmod` has the sign of its first argument; `ldexp(x, n)` is
                                x·2ⁿ with an int32 n; `nextafter(x, y)` is the next number of the
                                dtype, and y where they are equal
isnan isinf isfinite            of floats; a bool
popcount                        of integers: how many bits are 1
clz                             of integers: how many of the first bits are 0 (all of 0), an int32
tf32                            of float32, rounded to the 10 bits after the first that tensor cores
                                multiply as TF32, halves away from 0; infinity where that overflows
to_bits                         of floats: the signed integer of the same width with the same bits
from_bits                       of int16, int32 or int64: the float16, float32 or float64 with these
                                bits
sort_key                        of float32: an int32 that compares as the number does; 0 and -0 have
                                the same, and each NaN the largest
likely                          of a bool, which it returns: a hint that it is nearly always true
assume_bounds                   of an index, which it returns: a promise that it is inside
=============================== ================================================================

A function that rounds may give other bits of NaN in other places, and another sign of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from dlcompiler import dtypes

Domain: TypeAlias = Literal["float", "float32", "integer", "bits", "number", "bool", "index"]
Result: TypeAlias = Literal["same", "bool", "int32", "int", "float"]


@dataclass(frozen=True)
class Signature:
    """The dtypes of a function, and its names in NumPy and in C."""

    domain: Domain
    """Kind of dtype of the arguments, which all have the same dtype."""
    arity: int = 1
    """Number of arguments."""
    result: Result = "same"
    """Dtype of the result: that of the first argument, or as named; ``int`` and ``float`` have the
    width of the argument."""
    is_exact: bool = False
    """Whether the result of an exact argument is exact."""
    last: str | None = None
    """Dtype of the last argument, if it differs from the others."""
    libm: str | None = None
    """Its name in the C library for float64; the float32 version has the suffix ``f``."""
    numpy: Callable[..., Any] | None = None
    """The equivalent NumPy function, for every dtype of the domain except floats of 16 bits."""

    def result_dtype(self, argument: str) -> str:
        """Return the dtype of the result for a first argument of this dtype."""
        if self.result == "same":
            return argument
        width = str(dtypes.bits(argument)) if self.result in ("int", "float") else ""
        return dtypes.with_lanes(f"{self.result}{width}", dtypes.lanes(argument))

    def takes(self, *arguments: str) -> bool:
        """Tell whether the function takes arguments of these dtypes."""
        if len(arguments) != self.arity or not self._is_in_domain(arguments[0]):
            return False
        expected = [arguments[0]] * self.arity
        if self.last is not None:
            expected[-1] = dtypes.with_lanes(self.last, dtypes.lanes(arguments[0]))
        return expected == list(arguments)

    def _is_in_domain(self, dtype: str) -> bool:
        match self.domain:
            case "float":
                return dtypes.is_float(dtype)
            case "float32":
                return dtypes.element(dtype) == "float32"
            case "integer":
                return dtypes.is_int(dtype)
            case "bits":
                return dtypes.element(dtype) in ("int16", "int32", "int64")
            case "number":
                return dtypes.is_float(dtype) or dtypes.is_int(dtype)
            case "bool":
                return dtypes.is_bool(dtype)
            case "index":
                return dtypes.is_index(dtype)


FUNCTION_ULPS = 4
"""Largest error of a function that rounds; [units in the last place]."""

FUNCTIONS: dict[str, Signature] = {
    "acos": Signature("float", libm="acos", numpy=np.arccos),
    "acosh": Signature("float", libm="acosh", numpy=np.arccosh),
    "asin": Signature("float", libm="asin", numpy=np.arcsin),
    "asinh": Signature("float", libm="asinh", numpy=np.arcsinh),
    "atan": Signature("float", libm="atan", numpy=np.arctan),
    "atanh": Signature("float", libm="atanh", numpy=np.arctanh),
    "cos": Signature("float", libm="cos", numpy=np.cos),
    "cosh": Signature("float", libm="cosh", numpy=np.cosh),
    "erf": Signature("float", libm="erf"),
    "exp": Signature("float", libm="exp", numpy=np.exp),
    "exp10": Signature("float"),
    "exp2": Signature("float", libm="exp2", numpy=np.exp2),
    "log": Signature("float", libm="log", numpy=np.log),
    "log10": Signature("float", libm="log10", numpy=np.log10),
    "log1p": Signature("float", libm="log1p", numpy=np.log1p),
    "log2": Signature("float", libm="log2", numpy=np.log2),
    "rsqrt": Signature("float"),
    "sigmoid": Signature("float"),
    "sin": Signature("float", libm="sin", numpy=np.sin),
    "sinh": Signature("float", libm="sinh", numpy=np.sinh),
    "sqrt": Signature("float", libm="sqrt", numpy=np.sqrt),
    "tan": Signature("float", libm="tan", numpy=np.tan),
    "tanh": Signature("float", libm="tanh", numpy=np.tanh),
    "atan2": Signature("float", 2, libm="atan2", numpy=np.arctan2),
    "hypot": Signature("float", 2, libm="hypot", numpy=np.hypot),
    "nextafter": Signature("float", 2, libm="nextafter"),
    "pow": Signature("float", 2, libm="pow"),
    "ceil": Signature("float", is_exact=True, libm="ceil", numpy=np.ceil),
    "floor": Signature("float", is_exact=True, libm="floor", numpy=np.floor),
    "round": Signature("float", is_exact=True, libm="rint", numpy=np.rint),
    "trunc": Signature("float", is_exact=True, libm="trunc", numpy=np.trunc),
    "abs": Signature("number", is_exact=True, libm="fabs", numpy=np.abs),
    "copysign": Signature("float", 2, is_exact=True, libm="copysign", numpy=np.copysign),
    "fmod": Signature("float", 2, is_exact=True, libm="fmod", numpy=np.fmod),
    "ldexp": Signature("float", 2, last="int32", libm="ldexp", numpy=np.ldexp),
    "isfinite": Signature("float", result="bool", is_exact=True, numpy=np.isfinite),
    "isinf": Signature("float", result="bool", is_exact=True, numpy=np.isinf),
    "isnan": Signature("float", result="bool", is_exact=True, numpy=np.isnan),
    "tf32": Signature("float32", is_exact=True),
    "sort_key": Signature("float32", result="int32", is_exact=True),
    "to_bits": Signature("float", result="int", is_exact=True),
    "from_bits": Signature("bits", result="float", is_exact=True),
    "popcount": Signature("integer", is_exact=True),
    "clz": Signature("integer", result="int32", is_exact=True),
    "likely": Signature("bool", is_exact=True),
    "assume_bounds": Signature("index", is_exact=True),
}
"""Each function by its name in `Call`."""
