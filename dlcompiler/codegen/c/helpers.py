"""Helper functions in C, for operations that C leaves undefined and the loop IR defines.

The name is made of the operation and the short name of the dtype: ``floordiv`` of ``i32`` is
``dlc_floordiv_i32``. A source contains the helpers that it uses, in the order of this file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from dlcompiler import dtypes
from dlcompiler.codegen.c.dialect import Dialect
from dlcompiler.codegen.c.text import Text
from dlcompiler.errors import InternalError

_BITS = re.compile(r"<bits (\w+) (\w+)>")
"""Where a helper copies the bits of a value to another."""


def short(dtype: str) -> str:
    """Return the short name of a dtype; an index is computed as ``i64``.

    Examples
    --------
    >>> short("float32"), short("uint8"), short("bfloat16"), short("index")
    ('f32', 'u8', 'bf16', 'i64')
    """
    if dtypes.is_index(dtype):
        return "i64"
    letter = {"float": "f", "int": "i", "uint": "u", "bool": "b"}[dtypes.family(dtype)]
    return f"{'b' if dtype == 'bfloat16' else ''}{letter}{dtypes.bits(dtype)}"


class Helpers:
    """The helper functions that a source uses."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._used: dict[tuple[str, str], None] = {}
        self._given: dict[str, None] = {}

    def call(self, operation: str, dtype: str, *arguments: Text) -> Text:
        """Return the call of a helper for a dtype, and add the helper to the source."""
        dtype = self.dialect.index if dtypes.is_index(dtype) else dtype
        name = self._use(operation, dtype)
        return Text(f"{name}({', '.join(argument.text for argument in arguments)})")

    def add(self, definition: str) -> None:
        """Add a function that is not among these helpers, by its text."""
        self._given.setdefault(definition)

    def _use(self, operation: str, dtype: str) -> str:
        if operation not in _ALL:
            raise InternalError("generate C code", f"no helper for {operation} of {dtype}")
        for needed in _ALL[operation].needs(dtype):
            self._use(*needed)
        self._used.setdefault((operation, dtype))
        return _name(operation, dtype)

    def definitions(self) -> list[str]:
        """Return the definitions; each consists of several lines and begins with a comment."""
        order = list(_ALL)
        used = sorted(self._used, key=lambda item: (order.index(item[0]), item[1]))
        return [*(self._definition(*item) for item in used), *self._given]

    def _copied(self, to: str, value: str) -> str:
        types = {"bits": "uint32_t", "wide_bits": "uint64_t", "wide": "double"}
        return self.dialect.bits[types.get(to, "float")].format(to=to, value=value)

    def _definition(self, operation: str, dtype: str) -> str:
        helper = _ALL[operation]
        names = {
            "name": _name(operation, dtype),
            "T": self.dialect.types[dtype],
            "U": f"uint{max(dtypes.bits(dtype), 32)}_t",
            "bits": str(dtypes.bits(dtype)),
            "last": str(dtypes.bits(dtype) - 1),
            "f": self.dialect.suffix if dtype == "float32" else "",
            "one": "1.0f" if dtype == "float32" else "1.0",
        }
        native = self.dialect.helpers.get(f"{operation} {short(dtype)}")
        written = helper.write(dtype)
        if native is not None:  # the head stays, with another body
            written = "\n".join((written.partition("\n{\n")[0], "{", native, "}"))
        text = "\n".join((f"/* {helper.about} */", written))
        text = _BITS.sub(lambda found: self._copied(*found.groups()), text)
        for name, value in names.items():
            text = text.replace(f"<{name}>", value)
        return text.replace("<inline>", self.dialect.helper)


def _name(operation: str, dtype: str) -> str:
    return f"dlc_{operation}" if operation == "allocate" else f"dlc_{operation}_{short(dtype)}"


@dataclass(frozen=True)
class _Helper:
    about: str
    """Comment that says what it computes."""
    write: Callable[[str], str]
    """Dtype -> its definition, with ``<name>``, ``<T>`` … in place of what depends on the dtype."""
    needs: Callable[[str], tuple[tuple[str, str], ...]] = lambda dtype: ()
    """Dtype -> the helpers that it calls."""


def _function(parameters: str, *body: str, result: str = "<T>") -> str:
    lines = "\n".join(f"    {line}" for line in body)
    return f"<inline> {result} <name>({parameters})\n{{\n{lines}\n}}"


def _same(text: str) -> Callable[[str], str]:
    return lambda dtype: text


def _by_sign(signed: str, unsigned: str) -> Callable[[str], str]:
    return lambda dtype: unsigned if dtypes.is_unsigned(dtype) else signed


_TWO = "<T> a, <T> b"


def _wrapping(symbol: str) -> Callable[[str], str]:
    return _same(_function(_TWO, f"return (<T>)((<U>)a {symbol} (<U>)b);"))


_NEGATED = "return (<T>)(0 - (<U>)a);"
_UNSIGNED_QUOTIENT = _function(_TWO, "return b == 0 ? 0 : (<T>)(a / b);")
_UNSIGNED_REMAINDER = _function(_TWO, "return b == 0 ? 0 : (<T>)(a % b);")
_TRUNCDIV = _function(
    _TWO, "if (b == 0) {", "    return 0;", "}",
    "if (b == -1) {", f"    {_NEGATED}", "}", "return (<T>)(a / b);",
)  # fmt: skip
_FLOORDIV = _function(
    _TWO, "if (b == 0) {", "    return 0;", "}",
    "if (b == -1) {", f"    {_NEGATED}", "}",
    "return (<T>)(a / b - (a % b != 0 && (a < 0) != (b < 0)));",
)  # fmt: skip
_TRUNCMOD = _function(_TWO, "return b == 0 || b == -1 ? 0 : (<T>)(a % b);")
_FLOORMOD = _function(
    _TWO, "if (b == 0 || b == -1) {", "    return 0;", "}",
    "return (<T>)(a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0));",
)  # fmt: skip
_SHL = _function(_TWO, "return b >= 0 && b < <bits> ? (<T>)((<U>)a << b) : 0;")
_SHL_UNSIGNED = _function(_TWO, "return b < <bits> ? (<T>)((<U>)a << b) : 0;")
_SHR = _function(
    _TWO, "const int by = b >= 0 && b < <bits> ? (int)b : <last>;",
    "return (<T>)(a < 0 ? ~(~a >> by) : a >> by);",
)  # fmt: skip
_SHR_UNSIGNED = _function(_TWO, "return b < <bits> ? (<T>)(a >> b) : 0;")


def _extremum(symbol: str) -> Callable[[str], str]:
    number = _function(_TWO, f"return a {symbol} b || a != a ? a : b;")
    integer = _function(_TWO, f"return a {symbol} b ? a : b;")
    return lambda dtype: number if dtypes.is_float(dtype) else integer


_ABS = _function("<T> a", "if (a >= 0) {", "    return a;", "}", _NEGATED)
_UNSIGNED_OF = "u = (uint<bits>_t)a"
_POPCOUNT = _function(
    "<T> a", "<T> count = 0;", f"for (uint64_t {_UNSIGNED_OF}; u != 0; u &= u - 1) {{",
    "    ++count;", "}", "return count;",
)  # fmt: skip
_CLZ = _function(
    "<T> a", "int32_t count = <bits>;", f"for (uint64_t {_UNSIGNED_OF}; u != 0; u >>= 1) {{",
    "    --count;", "}", "return count;", result="int32_t",
)  # fmt: skip


def _saturating(target: str) -> Callable[[str], str]:
    """Return the conversion of floats to the integers `target`."""
    bits, type_ = dtypes.bits(target), f"{target}_t"
    name = type_[:-2].upper()
    limit = 2.0 ** (bits if dtypes.is_unsigned(target) else bits - 1)

    def write(dtype: str) -> str:
        suffix = "f" if dtype == "float32" else ""
        low: tuple[str, ...]
        if dtypes.is_unsigned(target):
            low = ("if (!(x > 0)) {", "    return 0;", "}")
        else:
            low = (
                "if (x != x) {", "    return 0;", "}",
                f"if (x <= -{limit}{suffix}) {{", f"    return {name}_MIN;", "}",
            )  # fmt: skip
        high = f"return x >= {limit}{suffix} ? {name}_MAX : ({type_})x;"
        return _function("<T> x", *low, high, result=type_)

    return write


_SORT_KEY = """\
<inline> int32_t <name>(float value)
{
    uint32_t bits;
    int32_t size;
    <bits bits value>
    size = (int32_t)(bits & UINT32_C(0x7fffffff));
    return value != value ? 0x7fffffff : bits >> 31 ? -size : size;
}"""


def _bits_of_float(dtype: str) -> str:
    to = "bits" if dtype == "float32" else "wide_bits"
    return _function(
        "<T> value", f"uint<bits>_t {to};", f"<bits {to} value>", f"return (int<bits>_t){to};",
        result="int<bits>_t",
    )  # fmt: skip


def _float_of_bits(dtype: str) -> str:
    float_, to = ("float", "value") if dtype == "int32" else ("double", "wide")
    return _function(
        "<T> bits", "const <U> pattern = (<U>)bits;", f"{float_} {to};", f"<bits {to} pattern>",
        f"return {to};", result=float_,
    )  # fmt: skip


_F16_TO_F32 = """\
<inline> float <name>(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h >> 15) << 31;
    const uint32_t rest = (uint32_t)(h & 0x7fff) << 13;
    uint32_t bits = sign | (rest + (UINT32_C(112) << 23));
    float value;
    if (rest >= UINT32_C(31) << 23) { /* infinity and NaN */
        bits = sign | UINT32_C(0x7f800000) | (rest & UINT32_C(0x7fffff));
    } else if (rest < UINT32_C(1) << 23) { /* zero and subnormal numbers: multiples of 2^-24 */
        value = (float)(h & 0x7fff) * 5.9604644775390625e-08f;
        return sign != 0 ? -value : value;
    }
    <bits value bits>
    return value;
}"""
_TF32 = """\
<inline> float <name>(float value)
{
    uint32_t bits;
    <bits bits value>
    if ((bits & UINT32_C(0x7f800000)) != UINT32_C(0x7f800000)) {
        bits = (bits + UINT32_C(0x1000)) & UINT32_C(0xffffe000);
    }
    <bits value bits>
    return value;
}"""
_F32_TO_F16 = """\
<inline> uint16_t <name>(float value)
{
    uint32_t bits;
    <bits bits value>
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    bits &= UINT32_C(0x7fffffff);
    if (bits > UINT32_C(0x7f800000)) { /* NaN */
        return (uint16_t)(sign | 0x7e00);
    }
    if (bits >= UINT32_C(0x477ff000)) { /* 65520 and more */
        return (uint16_t)(sign | 0x7c00);
    }
    if (bits < UINT32_C(0x38800000)) { /* less than 2^-14: the addition rounds to 2^-24 */
        float magnitude;
        <bits magnitude bits>
        magnitude += 0.5f;
        <bits bits magnitude>
        return (uint16_t)(sign | (bits - UINT32_C(0x3f000000)));
    }
    bits += 0xfff + (bits >> 13 & 1);
    return (uint16_t)(sign | ((bits - (UINT32_C(112) << 23)) >> 13));
}"""
_BF16_TO_F32 = """\
<inline> float <name>(uint16_t h)
{
    const uint32_t bits = (uint32_t)h << 16;
    float value;
    <bits value bits>
    return value;
}"""
_F32_TO_BF16 = """\
<inline> uint16_t <name>(float value)
{
    uint32_t bits;
    <bits bits value>
    if (value != value) {
        return (uint16_t)(bits >> 16 | 0x40);
    }
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}"""
_ODD = """\
<inline> float <name>(double x)
{
    float nearest = (float)x;
    const double back = (double)nearest;
    uint32_t bits;
    if (back == x || x != x) {
        return nearest;
    }
    <bits bits nearest>
    bits = (bits - (fabs(back) > fabs(x) ? 1 : 0)) | 1;
    <bits nearest bits>
    return nearest;
}"""
_STICKY = """\
<inline> double <name>(<T> x)
{
    const bool is_small = x < ((<T>)1 << 53)<also>;
    return (double)(is_small ? x : (<T>)((x & ~(<T>)0x7ff) | ((x & 0x7ff) != 0 ? 0x800 : 0)));
}"""
_SIGMOID = _function(
    "<T> x", "const <T> small = exp<f>(-fabs<f>(x));",
    "return (x < 0 ? small : <one>) / (<one> + small);",
)  # fmt: skip
_NEXT = """\
<inline> float <name>(float x, float y)
{
    uint16_t bits = dlc_from_f32_<kind>(x);
    if (x != x || y != y) {
        return NAN;
    }
    if (x == y) {
        return y;
    }
    if (x == 0) {
        bits = (uint16_t)(y < 0 ? 0x8001 : 0x0001);
    } else {
        bits = (uint16_t)((x < y) == (x > 0) ? bits + 1 : bits - 1);
    }
    return dlc_to_f32_<kind>(bits);
}"""


def _half(of_float16: str, of_bfloat16: str) -> Callable[[str], str]:
    return lambda dtype: of_float16 if dtype == "float16" else of_bfloat16


def _halves(dtype: str) -> tuple[tuple[str, str], ...]:
    return (("to_f32", dtype), ("from_f32", dtype))


def _sticky(dtype: str) -> str:
    also = "" if dtypes.is_unsigned(dtype) else " && x > -((<T>)1 << 53)"
    return _STICKY.replace("<also>", also)


_INTEGERS = tuple(name for name in dtypes.SCALARS if dtypes.is_int(name))
_ALL: dict[str, _Helper] = {
    "add": _Helper("a + b, which wraps", _wrapping("+")),
    "sub": _Helper("a - b, which wraps", _wrapping("-")),
    "mul": _Helper("a * b, which wraps", _wrapping("*")),
    "truncdiv": _Helper("a / b toward zero; 0 for b = 0", _by_sign(_TRUNCDIV, _UNSIGNED_QUOTIENT)),
    "truncmod": _Helper("What a / b leaves; 0 for b = 0", _by_sign(_TRUNCMOD, _UNSIGNED_REMAINDER)),
    "floordiv": _Helper(
        "a / b toward minus infinity; 0 for b = 0", _by_sign(_FLOORDIV, _UNSIGNED_QUOTIENT)
    ),
    "floormod": _Helper(
        "What floor division leaves, with the sign of b; 0 for b = 0",
        _by_sign(_FLOORMOD, _UNSIGNED_REMAINDER),
    ),
    "shl": _Helper(
        "a << b; a shift by the width or more leaves 0", _by_sign(_SHL, _SHL_UNSIGNED)
    ),
    "shr": _Helper(
        "a >> b, which keeps the sign; b may be the width or more", _by_sign(_SHR, _SHR_UNSIGNED)
    ),
    "min": _Helper("The smaller number; NaN if one is", _extremum("<")),
    "max": _Helper("The larger number; NaN if one is", _extremum(">")),
    "abs": _Helper("The absolute value; of the smallest number it wraps", _same(_ABS)),
    "popcount": _Helper("How many bits are 1", _same(_POPCOUNT)),
    "clz": _Helper("How many of the first bits are 0", _same(_CLZ)),
    **{
        f"to_{short(target)}": _Helper(
            "Truncated; the nearest end where it is out of range, 0 for NaN", _saturating(target)
        )
        for target in _INTEGERS
    },
    "to_f32": _Helper("A float of 16 bits as float", _half(_F16_TO_F32, _BF16_TO_F32)),
    "from_f32": _Helper("The nearest float of 16 bits", _half(_F32_TO_F16, _F32_TO_BF16)),
    "round": _Helper(
        "The nearest number that 16 bits hold",
        lambda dtype: _function(
            "float x", f"return dlc_to_f32_{short(dtype)}(dlc_from_f32_{short(dtype)}(x));",
            result="float",
        ),
        _halves,
    ),
    "odd": _Helper(
        "A float whose last bit says that x is not that number: rounded again, it rounds once",
        _same(_ODD),
    ),
    "sticky": _Helper(
        "53 bits of an integer, the last of which says that there were more", _sticky
    ),
    "next": _Helper(
        "The next number of 16 bits after x toward y",
        lambda dtype: _NEXT.replace("<kind>", short(dtype)),
        _halves,
    ),
    "sigmoid": _Helper("1 / (1 + exp(-x)) without the power that overflows", _same(_SIGMOID)),
    "tf32": _Helper("A float32 with 10 bits of mantissa, halves away from 0", _same(_TF32)),
    "sort_key": _Helper("An integer that compares as x; NaN is the largest", _same(_SORT_KEY)),
    "to_bits": _Helper("The integer with the bits of a float", _bits_of_float),
    "from_bits": _Helper("The float with the bits of an integer", _float_of_bits),
    "allocate": _Helper(
        "Memory for a number of elements, as double since it may overflow; or NULL",
        _same(
            "<inline> void *<name>(double count, size_t size)\n{\n"
            "    if (!(count < (double)(SIZE_MAX / 2) / (double)size)) {\n"
            "        return NULL;\n"
            "    }\n"
            "    return malloc((count < 1 ? 1 : (size_t)count) * size);\n}"
        ),
    ),
}  # fmt: skip
