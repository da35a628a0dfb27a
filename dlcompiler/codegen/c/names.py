"""Choose identifiers close to the names in the loop IR that do not clash with C's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

_C = """
auto break case char const continue default do double else enum extern float for goto if inline int
long register restrict return short signed sizeof static struct switch typedef union unsigned void
volatile while bool true false asm typeof alignas alignof constexpr nullptr static_assert
thread_local typeof_unqual
"""
_CPP = """
and and_eq bitand bitor catch char8_t char16_t char32_t class compl concept const_cast consteval
constinit co_await co_return co_yield decltype delete dynamic_cast explicit export friend mutable
namespace new noexcept not not_eq operator or or_eq private protected public reinterpret_cast
requires static_cast template this throw try typeid typename using virtual wchar_t xor xor_eq
"""
_MATH = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 exp10 expm1
fabs fdim floor fma fmax fmin fmod frexp hypot ilogb ldexp lgamma llrint llround log log10 log1p
log2 logb lrint lround modf nan nearbyint nextafter nexttoward pow remainder remquo rint round
scalbln scalbn sin sincos sinh sqrt tan tanh tgamma trunc gamma j0 j1 jn y0 y1 yn drem significand
pow10 scalb
"""
_LIBRARY = """
abort abs alloca atexit atof atoi atol atoll bsearch calloc div exit free getenv labs ldiv llabs
lldiv malloc mblen mbstowcs mbtowc qsort rand realloc srand strtod strtof strtol strtold strtoll
strtoul strtoull system wcstombs wctomb aligned_alloc memchr memcmp memcpy memmove memset strcat
strchr strcmp strcoll strcpy strcspn strerror strlen strncat strncmp strncpy strpbrk strrchr strspn
strstr strtok strxfrm index rindex random printf puts putchar scanf getchar remove rename std
fpclassify isfinite isgreater isgreaterequal isinf isless islessequal islessgreater isnan isnormal
isunordered signbit
math_errhandling signgam main errno assert linux unix i386 stdin stdout stderr
NULL NAN INFINITY I EOF RAND_MAX EXIT_SUCCESS EXIT_FAILURE MB_CUR_MAX DOMAIN SING OVERFLOW UNDERFLOW
PLOSS TLOSS X_TLOSS MAXFLOAT
"""
RESERVED = frozenset(
    [*_C.split(), *_CPP.split(), *_LIBRARY.split(), "status", "done"]
    + [f"{name}{suffix}" for name in _MATH.split() for suffix in ("", "f", "l")]
)
"""Keywords of C and C++, names of the library's headers, and names that every source declares."""

# Macros of the headers, reserved by the standard, and types: int64_t, INT64_MAX, M_PI, FP_NAN …
_RESERVED_FORM = re.compile(
    r"_.*|.*_t|dlc_.*|U?INT.*_(MAX|MIN|C)|(M|FP|HUGE|MATH|FLT|DBL|SIZE|PTRDIFF|SIG|WCHAR|WINT)_.*"
    r"|([SU]?CHAR|U?SHRT|U?LONG|HALF|CLK?|ATOMIC|cl)_.*"  # also of OpenCL C
)
MOST_CHARACTERS = 60
"""Longest identifier that is made from a name in the IR; C compares at least 63 characters."""


def identifier(name: str) -> str:
    """Convert a name to an identifier that is neither a keyword nor a library name.

    Examples
    --------
    >>> identifier("j.outer"), identifier("double"), identifier("*/ x"), identifier("2")
    ('j_outer', 'double_', 'x', 'v2')
    """
    text = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")[:MOST_CHARACTERS] or "v"
    if text[0].isdigit() or text.startswith("dlc_"):
        text = f"v{text}"
    return f"{text}_" if text in RESERVED or _RESERVED_FORM.fullmatch(text) else text


class Names:
    """The identifiers of one function; each is unique among those in scope.

    Parameters
    ----------
    reserved
        Names that the language has besides those of C and C++.
    """

    def __init__(self, reserved: frozenset[str] = frozenset()) -> None:
        self._reserved = reserved
        self._blocks: list[set[str]] = [set()]

    def new(self, name: str) -> str:
        """Return a new identifier for this name, in scope until its block ends."""
        wanted = identifier(name)
        if wanted in self._reserved:
            wanted += "_"
        text = wanted
        number = 0
        while any(text in block for block in self._blocks):
            number += 1
            text = f"{wanted}_{number}"
        self._blocks[-1].add(text)
        return text

    def release(self, text: str) -> None:
        """Free an identifier of this block that was not used."""
        self._blocks[-1].remove(text)

    @contextmanager
    def block(self) -> Iterator[None]:
        """Open a block; its identifiers go out of scope at its end."""
        self._blocks.append(set())
        try:
            yield
        finally:
            self._blocks.pop()


def comment(text: str) -> str:
    """Escape a text for a comment, so that it cannot end the comment.

    Examples
    --------
    >>> comment("a */ b")
    'a * / b'
    """
    plain = text.encode("ascii", "backslashreplace").decode()
    plain = " ".join(plain.split()).replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")
    return "".join(letter if letter.isprintable() else "?" for letter in plain)
