"""How the operators here are defined: tensors and axes, of shapes known or symbolic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dlcompiler import te
from dlcompiler.ir import Axis


def tensor(shape: Any, element: Callable[..., Any], name: str, tag: str = "") -> te.Tensor:
    """Define a tensor by its element."""
    made: te.Tensor = te.compute(tuple(shape), element, name=name, tag=tag)
    return made


def over(extent: Any, name: str = "k") -> Axis:
    """Declare an axis to reduce over."""
    return te.reduce_axis((0, extent), name=name)
