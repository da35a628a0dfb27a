"""Epilogues: steps that are applied to each element of a result before it is stored.

An epilogue is named by its steps, ``"bias+relu"`` or ``"batch_norm+residual+relu"``, and applied in
the expression that copies the sums of a tile into the output, so that it needs no extra pass over
memory.

==============  ==================================================================================
``bias``        adds ``bias[c]``
``batch_norm``  multiplies by ``scale[c]`` and adds ``shift[c]``: normalisation at inference, whose
                mean, variance, gamma and beta are folded ahead (`folded_batch_norm`)
``residual``    adds ``residual``, of the output's shape
an activation   of `dlcompiler.ops.activations`
==============  ==================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.errors import TuningError
from dlcompiler.ir import Expr
from dlcompiler.ops.activations import ACTIVATIONS
from dlcompiler.ops.rounding import Array, Wide, rounded, unit
from dlcompiler.ops.widening import drawn
from dlcompiler.te import Tensor

_OF_INTEGERS = ("bias", "residual", "relu")
_OPERANDS = {"bias": ("bias",), "batch_norm": ("scale", "shift"), "residual": ("residual",)}


@dataclass(frozen=True, slots=True)
class Epilogue:
    """The steps after the sums of an operator.

    Examples
    --------
    >>> Epilogue.read("bias+relu", channel=1).operands((1, 8, 4, 4))
    {'bias': (8,)}
    """

    steps: tuple[str, ...]
    """Names, in the order in which they are done."""
    channel: int
    """Dimension of the output that bias, scale and shift go along."""

    @staticmethod
    def read(text: str, *, channel: int, where: str = "epilogue") -> Epilogue:
        """Parse steps joined by ``+``; the empty text is no epilogue.

        Raises
        ------
        TuningError
            A step is unknown, or one with operands stands twice.
        """
        steps = tuple(text.split("+")) if text else ()
        for step in steps:
            if step not in ACTIVATIONS and step not in _OPERANDS:
                raise TuningError(
                    where, "no such step of an epilogue", got=repr(step),
                    expected=", ".join((*_OPERANDS, *ACTIVATIONS)),
                )  # fmt: skip
            if step in _OPERANDS and steps.count(step) > 1:
                raise TuningError(where, f"the step {step} stands twice", got=repr(text))
        return Epilogue(steps, channel)

    @staticmethod
    def check(text: str, dtype: str, where: str) -> None:
        """Check that all steps of an epilogue are known and support a dtype.

        Raises
        ------
        TuningError
            A step is unknown, stands twice, or needs floats.
        """
        steps = Epilogue.read(text, channel=1, where=where).steps
        if dtypes.is_int(dtype) and not set(steps) <= set(_OF_INTEGERS):
            raise TuningError(
                where, "a step of the epilogue needs floats", got=repr(text),
                expected=", ".join(_OF_INTEGERS),
            )  # fmt: skip

    def operands(self, shape: Sequence[int]) -> dict[str, tuple[int, ...]]:
        """Return the shape of each operand by name, for an output of `shape`."""
        names = [name for step in self.steps for name in _OPERANDS.get(step, ())]
        along = (shape[self.channel],)
        return {name: tuple(shape) if name == "residual" else along for name in names}

    def placeholders(self, shape: Sequence[int], dtype: str) -> dict[str, Tensor]:
        """Return the operands as tensors, in the order of the kernel's parameters."""
        operands = self.operands(shape)
        return {name: te.placeholder(extents, dtype, name) for name, extents in operands.items()}

    def element(
        self,
        value: Expr,
        indices: Sequence[Any],
        operands: Mapping[str, Tensor],
        channel: Any = None,
    ) -> Any:
        """Apply the steps to a sum, and return the element at `indices` of the output.

        In blocked layouts no single index is the channel, so the caller passes `channel`.
        """
        channel = indices[self.channel] if channel is None else channel
        for step in self.steps:
            match step:
                case "bias":
                    value = value + operands["bias"][channel]
                case "batch_norm":
                    value = value * operands["scale"][channel] + operands["shift"][channel]
                case "residual":
                    value = value + operands["residual"][tuple(indices)]
                case _:
                    value = ACTIVATIONS[step].element(value)
        return value

    def inputs(
        self, shape: Sequence[int], dtype: str, generator: np.random.Generator
    ) -> dict[str, Array]:
        """Return random operands: see `widening.drawn`."""
        operands = self.operands(shape)
        return {name: drawn(extents, dtype, generator) for name, extents in operands.items()}

    def reference(
        self, value: Wide, bound: Wide, operands: Mapping[str, Array], dtype: str
    ) -> tuple[Wide, Wide]:
        """Apply the steps to exact sums and their bound; return the result and its bound."""
        spread = tuple(-1 if n == self.channel else 1 for n in range(value.ndim))
        wide: dict[str, Wide] = {
            name: array.astype(np.float64).reshape(value.shape if name == "residual" else spread)
            for name, array in operands.items()
        }
        for step in self.steps:
            value, bound = _STEPS.get(step, _activation(step))(value, bound, wide, dtype)
        return value, bound


_Step = Callable[[Wide, Wide, Mapping[str, Wide], str], tuple[Wide, Wide]]


def _bias(v: Wide, bound: Wide, operands: Mapping[str, Wide], dtype: str) -> tuple[Wide, Wide]:
    after = v + operands["bias"]
    return after, rounded(after, bound, dtype)


def _residual(v: Wide, bound: Wide, operands: Mapping[str, Wide], dtype: str) -> tuple[Wide, Wide]:
    after = v + operands["residual"]
    return after, rounded(after, bound, dtype)


def _batch_norm(
    v: Wide, bound: Wide, operands: Mapping[str, Wide], dtype: str
) -> tuple[Wide, Wide]:
    scaled = v * operands["scale"]
    after = scaled + operands["shift"]
    bound = rounded(scaled, bound * np.abs(operands["scale"]), dtype)
    return after, rounded(after, bound, dtype)


def _activation(name: str) -> _Step:
    def step(v: Wide, bound: Wide, operands: Mapping[str, Wide], dtype: str) -> tuple[Wide, Wide]:
        del operands
        activation = ACTIVATIONS[name]
        own = 2 * activation.ulps * unit(dtype) * (1 + np.abs(v))
        return activation.reference(v), activation.slope * bound + own

    return step


_STEPS: dict[str, _Step] = {"bias": _bias, "batch_norm": _batch_norm, "residual": _residual}


def folded_batch_norm(
    gamma: Array, beta: Array, mean: Array, variance: Array, epsilon: float = 1e-5
) -> tuple[Array, Array]:
    """Return ``scale`` and ``shift`` of a batch normalisation with fixed statistics.

    **Source:** S. Ioffe, C. Szegedy, "Batch normalization", ICML 2015, algorithm 2.
    """
    scale = gamma / np.sqrt(variance + epsilon)
    return scale, beta - mean * scale
