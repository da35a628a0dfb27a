"""The tail of an operator: what makes int8 results of int32 sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler import te
from dlcompiler.errors import TuningError
from dlcompiler.ops.helpers import tensor
from dlcompiler.space import Workload
from dlcompiler.te import Tensor

NAMES = ("shift", "bias", "residual", "relu")
LARGEST = 127
"""The largest result; the smallest is its negative, or 0 after ``relu``."""
MOST_SHIFT = 31


@dataclass(frozen=True, slots=True)
class Tail:
    """What follows the sums: ``clip((sums + bias >> shift) + residual)``."""

    shift: int
    """Bits by which sums are shifted to the right; [1]."""
    bias: bool
    """Whether a number is added to the sums of each output channel."""
    residual: bool
    """Whether a tensor like the result is added."""
    relu: bool
    """Whether results are at least 0."""

    def stages(self, sums: Tensor, bias: Tensor | None, residual: Tensor | None) -> Tensor:
        """Return the result of sums of shape ``(n, o, *spatial, b, co)``."""
        last = sums
        if bias is not None:
            last = _stage(last, lambda v, i: v + bias[_channel(i)], "biased")
        if self.shift:
            last = _stage(last, lambda v, _: v >> self.shift, "shifted")
        if residual is not None:
            last = _stage(last, lambda v, i: v + residual[i], "added")
        low = 0 if self.relu else -LARGEST
        last = _stage(last, lambda v, _: te.maximum(v, low), "raised")
        last = _stage(last, lambda v, _: te.minimum(v, LARGEST), "clipped")
        return _stage(last, lambda v, _: v.astype("int8"), "result")

    def exact(
        self, sums: npt.NDArray[np.int64], arrays: dict[str, npt.NDArray[Any]]
    ) -> npt.NDArray[np.int8]:
        """Return the result of sums by NumPy."""
        found = sums
        if self.bias:
            bias = arrays["bias"].astype(np.int64)
            spatial = (1,) * (sums.ndim - 4)
            found = found + bias.reshape(1, len(bias), *spatial, *bias.shape[1:])
        found = found.astype(np.int32) >> self.shift
        if self.residual:
            found = found + arrays["residual"]
        return np.clip(found, 0 if self.relu else -LARGEST, LARGEST).astype(np.int8)


def _stage(before: Tensor, function: Any, name: str) -> Tensor:
    return tensor(before.shape, lambda *i: function(before[i], i), name)


def _channel(indices: Sequence[Any]) -> tuple[Any, ...]:
    """Return the indices of a bias: the block of outputs, and the place in it."""
    return indices[1], indices[-2], indices[-1]


def checked_tail(
    op: str, *, shift: int = 8, bias: int = 0, residual: int = 0, relu: int = 1
) -> dict[str, int]:
    """Return the parameters of a tail as a workload holds them; see `Tail`.

    Raises
    ------
    TuningError
        One is not valid.
    """
    if type(shift) is not int or not 0 <= shift <= MOST_SHIFT:
        raise TuningError(
            f"workload of {op}", "shift is no number of bits", got=repr(shift),
            expected=f"0 to {MOST_SHIFT}",
        )  # fmt: skip
    flags = {}
    for name, value in (("bias", bias), ("residual", residual), ("relu", relu)):
        if value not in (0, 1):
            raise TuningError(
                f"workload of {op}", f"{name} is no flag", got=repr(value), expected="0 or 1"
            )
        flags[name] = int(value)
    return {"shift": shift, **flags}


def tail_of(workload: Workload) -> Tail:
    """Return the tail of a workload."""
    flags = (bool(workload[name]) for name in ("bias", "residual", "relu"))
    return Tail(workload["shift"], *flags)
