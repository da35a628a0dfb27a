"""Tables of the spellings that differ between the languages of the C family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from dlcompiler import dtypes
from dlcompiler.ir.functions import FUNCTIONS


@dataclass(frozen=True)
class Dialect:
    """A language of the C family."""

    name: str
    """Name in messages and comments: ``"C99"``."""
    types: Mapping[str, str]
    """Dtype -> type of a value."""
    stored: Mapping[str, str]
    """Dtype -> type of an element in memory, where it differs from that of a value."""
    functions: Mapping[str, str]
    """Function of the IR -> its name for float64; the one for float32 has a suffix."""
    helper: str
    """Qualifiers of helper functions."""
    headers: tuple[str, ...] = ()
    """Headers that the source includes, besides those of its own header."""
    index: str = "int64"
    """Dtype in which indices are computed."""
    suffix: str = "f"
    """What the names of functions of float32 end with."""
    bits: Mapping[str, str] = field(
        default_factory=lambda: dict.fromkeys(
            ("float", "uint32_t", "double", "uint64_t"), "memcpy(&{to}, &{value}, sizeof {to});"
        )
    )
    """Type -> the statement that sets a variable of it to a value of the other type with the same
    bits."""
    helpers: Mapping[str, str] = field(default_factory=dict)
    """Helper functions that the language has by itself: operation and dtype, as in ``to_f32 f16``
    -> the statements of the body; see `codegen.c.helpers`."""
    reserved: frozenset[str] = frozenset()
    """Names that identifiers of a program may not have, besides those of C and C++."""

    def function(self, name: str, dtype: str) -> str | None:
        """Return the name of a mathematical function for float32 or float64; None: it has none."""
        known = self.functions.get(name)
        return known and f"{known}{self.suffix if dtype == 'float32' else ''}"

    def element(self, dtype: str) -> str:
        """Return the type of an element in memory."""
        return self.stored.get(dtype, self.types[dtype])


def _c99_types() -> dict[str, str]:
    floats = {"float16": "float", "bfloat16": "float", "float32": "float", "float64": "double"}
    integers = {name: f"{name}_t" for name in dtypes.SCALARS if dtypes.is_int(name)}
    return {**integers, **floats, "bool": "bool", "index": "int64_t"}


C99 = Dialect(
    name="C99",
    types=MappingProxyType(_c99_types()),
    stored=MappingProxyType({"float16": "uint16_t", "bfloat16": "uint16_t", "bool": "uint8_t"}),
    functions=MappingProxyType(
        {name: signature.libm for name, signature in FUNCTIONS.items() if signature.libm}
    ),
    helper="static inline",
    headers=("math.h", "stdlib.h", "string.h"),
)
"""C99 has no floats of 16 bits: memory holds their bits, and operations compute in ``float`` and
round each result. A bool in memory is a ``uint8_t`` where every value but 0 is true: reading a C
``bool`` whose byte is neither 0 nor 1 is undefined."""
