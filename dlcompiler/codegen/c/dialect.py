"""What the languages of the C family spell differently, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from dlcompiler import dtypes
from dlcompiler.ir.functions import FUNCTIONS


@dataclass(frozen=True)
class Dialect:
    """A language of the C family."""

    name: str
    """As in messages and comments: ``"C99"``."""
    types: Mapping[str, str]
    """Dtype -> type of a value."""
    stored: Mapping[str, str]
    """Dtype -> type of an element in memory, where that is another one."""
    functions: Mapping[str, str]
    """Function of the IR -> function of float64; of float32 with an ``f`` behind its name."""
    helper: str
    """What stands before the definition of a helper function."""
    headers: tuple[str, ...]
    """What the source includes beside what its header does."""

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
"""C99 has no floats of 16 bits: they are kept as their bits, and computed as ``float`` that is
rounded after each operation. A bool in memory is a byte, of which each value but 0 is true: a
``bool`` of C whose byte is neither 0 nor 1 has no defined value."""
