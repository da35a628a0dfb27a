"""A node of an MXNet symbol, as the converters of operators see it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dlcompiler.graph.frontends.mxnet.reading import DTYPES, MOST_ELEMENTS, OPERATION
from dlcompiler.graph.frontends.origin import Origin, constant_of
from dlcompiler.graph.ir import Constant, Expr

MOST_NUMBERS = 1 << 24
"""Most elements of a constant that is made for a node; [1]."""
Outputs: TypeAlias = "Expr | Sequence[Expr]"
"""What a converter returns: the only result, or all. Those that it cannot compute are left out at
the end, and refused if something reads them.
"""


@dataclass
class MxnetNode(Origin):
    """A node with its operands, as expressions; its attributes are texts, as in the file."""

    op_name: str
    inputs: Sequence[Expr]
    attrs: Mapping[str, str]
    asked: set[str] = field(default_factory=set, init=False)
    """Names of the attributes that the converter asked for; others are refused."""
    shape_hint: ClassVar[str | None] = (
        "give the shapes of inputs: from_mxnet(symbol, params, shapes={name: …})"
    )

    def input(self, i: int) -> Expr:
        """Return an operand that must be there."""
        if i >= len(self.inputs):
            self.fail(f"operand {i} is missing")
        return self.inputs[i]

    # -- constants --------------------------------------------------------------------------------

    def numbers(self, values: ArrayLike, dtype: str) -> Constant:
        """Return numbers as a constant; refuse a dtype that does not have them."""
        array = np.asarray(values)
        with np.errstate(over="ignore", invalid="ignore"):
            made = constant_of(array, dtype)
        is_float = "float" in dtype
        is_kept = np.isfinite(made.value) == np.isfinite(array) if is_float else made.value == array
        if not np.all(is_kept):
            self.fail(f"a number is no {dtype}", got=str(np.ravel(array)[~np.ravel(is_kept)][0]))
        return made

    def scalar(self, value: float | bool, like: Expr | str) -> Constant:
        """Return a number of the dtype of another tensor; refuse one that it does not have."""
        return self.numbers(value, like if isinstance(like, str) else self.dtype(like))

    # -- attributes -------------------------------------------------------------------------------

    def text(self, name: str, default: str | None = None) -> str | None:
        """Return an attribute as a text, or its default; ``None`` in the file stands for that."""
        self.asked.add(name)
        found = self.attrs.get(name)
        return default if found in (None, "None") else found

    def choice(self, name: str, *names: str) -> str:
        """Return an attribute that is one of several names; the first is the default."""
        found = self.text(name, names[0])
        if found not in names:
            self.fail(f"{name} has an unknown value", got=repr(found)[:100],
                      expected=", ".join(names))  # fmt: skip
        return found

    def flag(self, name: str, default: bool = False) -> bool:
        """Return an attribute that is true or false."""
        found = self.text(name, str(default)) or ""
        if found.lower() not in ("true", "false", "1", "0"):
            self.fail(f"{name} is neither true nor false", got=repr(found)[:100])
        return found.lower() in ("true", "1")

    def number(self, name: str, default: float | None = None) -> float:
        """Return an attribute that is a number; one without a default must be there."""
        found = self.text(name, None if default is None else repr(default))
        try:
            value = float(found or "")
        except ValueError:
            value = math.nan
        if math.isnan(value):
            self.fail(f"{name} is no number, or is missing", got=repr(found)[:100])
        return value

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an attribute that is an integer; one without a default must be there."""
        found = self.bounds(name)
        if not found and default is not None:
            return default
        if len(found) != 1 or found[0] is None:
            self.fail(f"{name} is no integer, or is missing", got=repr(self.text(name))[:100])
        return found[0]

    def integers(self, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        """Return an attribute that is a list of integers."""
        found = self.bounds(name)
        known = tuple(n for n in found if n is not None)
        if len(known) < len(found):
            self.fail(f"{name} leaves numbers out", got=repr(self.text(name))[:100])
        return known or tuple(default)

    def bounds(self, name: str) -> tuple[int | None, ...]:
        """Return an attribute that is a list of integers; None for one that is left out."""
        found = self.text(name, "") or ""
        parts = [part.strip().rstrip("L") for part in found.strip(" ()[]").split(",")]
        try:
            values = [None if part == "None" else int(part) for part in parts if part]
        except ValueError:
            self.fail(f"{name} is no list of integers", got=repr(found)[:100])
        if any(value is not None and abs(value) > MOST_ELEMENTS for value in values):
            self.fail(f"{name} is too large", got=repr(found)[:100])
        return tuple(values)

    def dtype_attr(self, default: str) -> str:
        """Return the attribute ``dtype``."""
        return self.choice("dtype", default, *DTYPES)

    def axis(self, rank: int, default: int | None = None, name: str = "axis") -> int:
        """Return an attribute that is an axis, counted from the front."""
        axis = self.integer(name, default)
        if not -rank <= axis < rank:
            self.fail("there is no such axis", got=f"axis {axis} of {rank} dimensions")
        return axis % rank

    def limited(self, shape: Sequence[int], most: int = MOST_ELEMENTS) -> tuple[int, ...]:
        """Return the shape of a result that does not come from operands."""
        if any(n < 0 for n in shape) or math.prod(shape) > most:
            self.fail("no tensor has such a shape", got=repr(shape)[:100])
        return tuple(shape)

    def describe(self) -> str:
        """Return what is done, the operator and the name of the node."""
        return f"{OPERATION}: {self.op_name} {self.name}".strip()


Converter: TypeAlias = Callable[[MxnetNode], Outputs]
"""Returns the values of a node."""
