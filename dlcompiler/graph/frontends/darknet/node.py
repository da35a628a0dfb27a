"""A layer of a Darknet network, as the converters see it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from dlcompiler.graph.frontends.darknet.activations import ACTIVATIONS
from dlcompiler.graph.frontends.darknet.reading import (
    MOST_LAYERS,
    OPERATION,
    UNUSED,
    Weights,
)
from dlcompiler.graph.frontends.origin import Origin, folded
from dlcompiler.graph.ir import Constant, Expr, TensorType, Var

MOST_ELEMENTS = 2**31
"""Most elements of a tensor; [1]."""
_LARGEST = 2**31 - 1
_LARGEST_FLOAT = float(np.finfo(np.float32).max)
_NUMBER = re.compile(r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?")
_DEVIATION = 1e-6
"""What Darknet adds to standard deviations."""


@dataclass
class DarknetNode(Origin):
    """A layer with its options, and the results of the layers before it."""

    kind: str
    options: Mapping[str, str]
    source: Expr
    """The result of the layer before, or the input."""
    layers: Sequence[Expr] = ()
    """The results of all layers before."""
    weights: Weights | None = None
    """None: weights become parameters."""
    params: list[Var] = field(default_factory=list)
    """The parameters made so far."""
    known: set[str] = field(default_factory=set)
    """The options that the converter knows."""

    # -- options ----------------------------------------------------------------------------------

    def text(self, key: str, default: str) -> str:
        """Return an option as it is."""
        self.known.add(key)
        return self.options.get(key, default)

    def integer(self, key: str, default: int, *, low: int = 1) -> int:
        """Return an option that is a whole number, not below a bound."""
        return self._integer(key, self.text(key, str(default)), low)

    def integers(self, key: str, default: str = "") -> list[int]:
        """Return an option that is a list of whole numbers."""
        text = self.text(key, default)
        items = text.split(",") if text else []
        if len(items) > MOST_LAYERS:
            self.fail(f"option {key} is too long", got=f"{len(items):,} numbers",
                      expected=f"at most {MOST_LAYERS:,}")  # fmt: skip
        return [self._integer(key, item, -_LARGEST) for item in items]

    def _integer(self, key: str, text: str, low: int) -> int:
        found = int(text) if re.fullmatch(r"[+-]?[0-9]{1,10}", text) else None
        if found is None or not low <= found <= _LARGEST:
            self.fail(f"option {key} is no such number", got=text[:100] or "nothing",
                      expected=f"a whole number from {low} to {_LARGEST}")  # fmt: skip
        return found

    def number(self, key: str, default: float) -> float:
        """Return an option that is a number, as the float32 that Darknet makes of it."""
        text = self.text(key, str(default))
        found = float(text) if _NUMBER.fullmatch(text) else math.nan
        if not abs(found) <= _LARGEST_FLOAT:
            self.fail(f"option {key} is no float32", got=text[:100])
        return float(np.float32(found))

    def flag(self, key: str) -> bool:
        """Return an option that is 0 or not."""
        return bool(self.integer(key, 0, low=-_LARGEST))

    def without(self, *keys: str) -> None:
        """Refuse options that are not supported, unless they are 0."""
        for key in keys:
            if self.text(key, "0") != "0":
                self.fail(f"option {key} is not supported", got=self.options[key][:100],
                          expected="0")  # fmt: skip

    def refuse_unknown(self) -> None:
        """Refuse options that neither the converter nor the table of training knows."""
        unused = UNUSED.get(self.kind, UNUSED[""])
        for key in self.options:
            if key not in self.known and key not in unused:
                self.fail(
                    "there is no such option here", got=key[:100],
                    expected=", ".join(sorted(self.known)) or "only options for training",
                )  # fmt: skip

    # -- operands ---------------------------------------------------------------------------------

    def image(self, value: Expr | None = None) -> Expr:
        """Return a result, or that of the layer before, as images NCHW; a vector is one pixel."""
        value = self.source if value is None else value
        shape = self.shape(value)
        return value if len(shape) == 4 else self.reshape(value, (*shape, 1, 1))

    def vector(self, value: Expr | None = None) -> Expr:
        """Return a result, or that of the layer before, as one vector for each image."""
        value = self.source if value is None else value
        first, *rest = self.shape(value)
        return self.reshape(value, (first, math.prod(rest)))

    def before(self, key: str) -> list[Expr]:
        """Return the results of layers that an option names: from the front, or back from here."""
        here = len(self.layers)
        places = [place + here if place < 0 else place for place in self.integers(key)]
        if not places or any(not 0 <= place < here for place in places):
            self.fail(f"option {key} names no layers before this one",
                      got=self.options.get(key, "nothing")[:100],
                      expected=f"numbers from {-here} to {here - 1}" if here
                      else "a layer before it")  # fmt: skip
        return [self.layers[place] for place in places]

    def weight(self, what: str, shape: tuple[int, ...], *, is_turned: bool = False) -> Expr:
        """Return the next weights of the file, or a parameter.

        Those that are turned have their first dimension last in the file.
        """
        count, name = math.prod(shape), f"{self.name}_{what}"
        if count > MOST_ELEMENTS:
            self.fail(f"its {what} are too large", got=f"{count:,} elements",
                      expected=f"at most {MOST_ELEMENTS:,}")  # fmt: skip
        if self.weights is None:
            self.params.append(Var(name, TensorType(shape)))
            self.types[self.params[-1]] = TensorType(shape)
            return self.params[-1]
        if count > self.weights.left:
            self.fail("the weights end too early", got=f"{self.weights.left:,} floats left",
                      expected=f"{count:,} {what}")  # fmt: skip
        array = self.weights.take(count)
        if is_turned:
            array = np.ascontiguousarray(array.reshape(-1, shape[0]).T)
        return Constant(array.reshape(shape), name)

    # -- results ----------------------------------------------------------------------------------

    def normalized(self, value: Expr, bias: Expr, moments: Sequence[Expr]) -> Expr:
        """Return a result with its bias, normalised if there are scales, means and variances.

        **Source:** ``normalize_cpu`` of Darknet divides by √variance + 10⁻⁶.
        """
        if not moments:
            return self.call("nn.bias_add", value, bias, axis=1)
        scale, mean, variance = moments
        own = replace(self, name=f"{self.name}_variance")
        root = own.call("add", own.call("sqrt", variance), self.scalar(_DEVIATION, variance))
        variance = folded(own.call("multiply", root, root), self.types, MOST_ELEMENTS)
        return self.call("nn.batch_norm", value, scale, bias, mean, variance, epsilon=0.0)[0]

    def moments(self, size: int) -> list[Expr]:
        """Return scales, means and variances if the layer normalises."""
        if not self.flag("batch_normalize"):
            return []
        names = ("scales", "rolling_mean", "rolling_variance")
        return [self.weight(name, (size,)) for name in names]

    def activated(self, value: Expr, default: str) -> Expr:
        """Return a result with the function of the option ``activation``."""
        name = self.text("activation", default)
        if name not in ACTIVATIONS:
            self.fail("its activation is not known", got=name[:100],
                      expected=", ".join(sorted(ACTIVATIONS)))  # fmt: skip
        return ACTIVATIONS[name](self, value)

    def describe(self) -> str:
        """Return what is done, the layer and its line."""
        where = f", line {self.span.line}" if self.span else ""
        return f"{OPERATION}: {self.name}{where}"


Converter: TypeAlias = Callable[[DarknetNode], Expr]
"""Returns the result of a layer."""
