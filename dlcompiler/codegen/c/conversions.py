"""Write conversions between dtypes. To integers they truncate and saturate; NaN becomes 0."""

from __future__ import annotations

from dlcompiler import dtypes
from dlcompiler.codegen.c.arithmetic import Arithmetic, computed
from dlcompiler.codegen.c.helpers import short
from dlcompiler.codegen.c.literals import literal
from dlcompiler.codegen.c.text import Text, conversion


def convert(arithmetic: Arithmetic, value: Text, source: str, target: str) -> Text:
    """Return the conversion of `value` from dtype `source` to `target`."""
    if source == target:
        return value
    if dtypes.is_bool(target):
        return arithmetic.compare("ne", source, value, literal(0, source))
    if dtypes.is_float(target):
        return _to_float(arithmetic, value, source, target)
    type_ = arithmetic.dialect.types[target]
    if dtypes.is_float(source):
        integer = arithmetic.dialect.index if dtypes.is_index(target) else target
        return arithmetic.helpers.call(f"to_{short(integer)}", computed(source), value)
    return conversion(type_, value)


def _to_float(arithmetic: Arithmetic, value: Text, source: str, target: str) -> Text:
    type_ = arithmetic.dialect.types[target]
    if computed(target) == target:
        return value if computed(source) == target else conversion(type_, value)
    if computed(source) == "float32":
        return arithmetic.rounded(target, value)
    return arithmetic.rounded(target, _nearly(arithmetic, value, source, target))


def _nearly(arithmetic: Arithmetic, value: Text, source: str, target: str) -> Text:
    """Return a float32 that rounds to the same float of 16 bits as `value`."""
    helpers = arithmetic.helpers
    if source == "float64":
        return helpers.call("odd", "float64", value)
    # Exact, or so large that float16 has only infinity for it.
    if dtypes.is_bool(source) or dtypes.bits(source) <= 16 or target == "float16":
        return conversion("float", value)
    if dtypes.bits(source) == 32:
        return helpers.call("odd", "float64", conversion("double", value))
    wide = arithmetic.dialect.index if dtypes.is_index(source) else source
    return helpers.call("odd", "float64", helpers.call("sticky", wide, value))
