"""The functions of the language: their names, and what they take and return.

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
likely                          of a bool, which it returns: a hint that it is nearly always true
assume_bounds                   of an index, which it returns: a promise that it is inside
=============================== ================================================================

A function that rounds may give other bits of NaN in other places, and another sign of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from dlcompiler import dtypes

Domain: TypeAlias = Literal["float", "integer", "number", "bool", "index"]
Result: TypeAlias = Literal["same", "bool", "int32"]


@dataclass(frozen=True)
class Signature:
    """What a function takes and returns."""

    domain: Domain
    """What the arguments are; all of one dtype."""
    arity: int = 1
    """Number of arguments."""
    result: Result = "same"
    """Dtype of the result: that of the first argument, or as named."""
    is_exact: bool = False
    """Whether the result is the true one, of an exact argument."""
    last: str | None = None
    """Dtype of the last argument, where it is another one."""

    def result_dtype(self, argument: str) -> str:
        """Return the dtype of the result for a first argument of this dtype."""
        if self.result == "same":
            return argument
        return dtypes.with_lanes(self.result, dtypes.lanes(argument))

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
            case "integer":
                return dtypes.is_int(dtype)
            case "number":
                return dtypes.is_float(dtype) or dtypes.is_int(dtype)
            case "bool":
                return dtypes.is_bool(dtype)
            case "index":
                return dtypes.is_index(dtype)


FUNCTION_ULPS = 4
"""How far a function that rounds may be from the true result, in units in the last place."""

_ROUNDED = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "exp", "exp10"),
    *("exp2", "log", "log10", "log1p", "log2", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan"),
    "tanh",
)

FUNCTIONS: dict[str, Signature] = {
    **{name: Signature("float") for name in _ROUNDED},
    **{name: Signature("float", 2) for name in ("atan2", "hypot", "nextafter", "pow")},
    **{name: Signature("float", is_exact=True) for name in ("ceil", "floor", "round", "trunc")},
    "abs": Signature("number", is_exact=True),
    "copysign": Signature("float", 2, is_exact=True),
    "fmod": Signature("float", 2, is_exact=True),
    "ldexp": Signature("float", 2, last="int32"),
    **{
        name: Signature("float", result="bool", is_exact=True)
        for name in ("isfinite", "isinf", "isnan")
    },
    "popcount": Signature("integer", is_exact=True),
    "clz": Signature("integer", result="int32", is_exact=True),
    "likely": Signature("bool", is_exact=True),
    "assume_bounds": Signature("index", is_exact=True),
}
"""Each function by its name in `Call`."""
