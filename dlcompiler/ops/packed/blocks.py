"""Blocks of tensors: one element of each memory of an accelerator with a matrix unit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, TypeAlias

from dlcompiler.errors import TuningError
from dlcompiler.space import Workload

MOST = 1 << 20
"""The largest extent of a workload; [1]."""
Sizes: TypeAlias = "int | tuple[int, int]"
"""Rows and columns, or one number for both."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """The extents of blocks: data is in blocks of ``batch × inputs``, weights ``outputs × inputs``.

    Sums are in blocks of ``batch × outputs``.

    Examples
    --------
    >>> Blocks.of("dense_packed", "1x16x16").intrinsic
    'vta_gemm_1x16x16'
    """

    batch: int
    outputs: int
    inputs: int

    @staticmethod
    def of(op: str, text: object) -> Blocks:
        """Read blocks as a workload holds them: ``"1x16x16"``, the batch, outputs and inputs.

        Raises
        ------
        TuningError
            The text is no three numbers.
        """
        found = re.fullmatch(r"([1-9]\d{0,4})x([1-9]\d{0,4})x([1-9]\d{0,4})", str(text))
        if found is None:
            raise TuningError(
                f"workload of {op}", "block is no size of blocks", got=repr(text),
                expected=f"batch, outputs and inputs, such as {str(STANDARD)!r}",
            )  # fmt: skip
        return Blocks(*map(int, found.groups()))

    def __str__(self) -> str:
        return f"{self.batch}x{self.outputs}x{self.inputs}"

    @property
    def intrinsic(self) -> str:
        """Name of the tensor intrinsic that multiplies blocks."""
        return f"vta_gemm_{self}"


STANDARD = Blocks(1, 16, 16)
"""The blocks of all presets of VTA."""


def blocks_of(workload: Workload) -> Blocks:
    """Return the blocks of a workload."""
    return Blocks.of(workload.op, workload["block"])


def pair(op: str, name: str, value: Any) -> tuple[Any, Any]:
    """Return a parameter as two numbers.

    Raises
    ------
    TuningError
        It is neither one number nor two.
    """
    if isinstance(value, tuple) and len(value) == 2:
        return value
    if type(value) is int:
        return value, value
    raise TuningError(
        f"workload of {op}", f"{name} is no size", got=repr(value), expected="an int, or two"
    )


def check_range(op: str, least: int, **values: Any) -> None:
    """Check that each parameter is a number from `least` to `MOST`.

    Raises
    ------
    TuningError
        One is not.
    """
    for name, value in values.items():
        if type(value) is not int or not least <= value <= MOST:
            raise TuningError(
                f"workload of {op}", f"{name} is out of range", got=repr(value),
                expected=f"an int from {least} to {MOST}",
            )  # fmt: skip


def check_whole(op: str, block: int, **values: int) -> None:
    """Check that each parameter is a multiple of the extent of a block.

    Raises
    ------
    TuningError
        One is not.
    """
    for name, value in values.items():
        if value % block:
            raise TuningError(
                f"workload of {op}", f"{name} is no multiple of a block", got=str(value),
                expected=f"a multiple of {block}", hint="add zeros",
            )  # fmt: skip


def check_kernel(
    op: str, image: tuple[int, int], kernel: tuple[int, int], padding: tuple[int, int]
) -> None:
    """Check that a kernel fits into the padded image.

    Raises
    ------
    TuningError
        It is larger.
    """
    height, width = (size + 2 * pad for size, pad in zip(image, padding, strict=True))
    if height < kernel[0] or width < kernel[1]:
        raise TuningError(
            f"workload of {op}", "the kernel is larger than the padded image",
            got=f"{kernel[0]}x{kernel[1]} on {height}x{width}",
        )  # fmt: skip
