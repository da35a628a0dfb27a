"""Broadcasting of operators between whole tensors, by NumPy's rules.

``A + B`` defines a new tensor with the stage ``T_add``. Dimensions are aligned from the last. In
each, the extents of A and B must be equal, or one of them 1, or one tensor lacks the dimension.
"""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.errors import ExpressionError
from dlcompiler.ir import Axis, Expr, Extent, index_const, is_one, structural_equal

Shape = tuple[Extent, ...]

NAMES = {
    "add": "T_add",
    "sub": "T_subtract",
    "mul": "T_multiply",
    "div": "T_divide",
    "floordiv": "T_floor_divide",
    "floormod": "T_mod",
    "neg": "T_negative",
    "cast": "T_cast",
    "lt": "T_less",
    "le": "T_less_equal",
    "gt": "T_greater",
    "ge": "T_greater_equal",
}
"""Operator -> name of the tensor that it defines, as in TVM's operator library ``topi``."""


def broadcast_shape(shapes: Sequence[Shape], operation: str) -> Shape:
    """Return the common shape of tensors that an operator combines.

    Parameters
    ----------
    shapes : sequence of tuple
        The shapes of the tensors.
    operation : str
        Names the operator in errors.

    Raises
    ------
    ExpressionError
        If two extents are not known to be equal, and neither is 1.

    Examples
    --------
    >>> broadcast_shape([(4, 1), (8,)], "add")
    (4, 8)
    """
    result: list[Extent] = []
    for position in range(1, max((len(shape) for shape in shapes), default=0) + 1):
        extents = [shape[-position] for shape in shapes if len(shape) >= position]
        wide = [extent for extent in extents if not is_one(extent)]
        if any(not same_extent(extent, wide[0]) for extent in wide):
            raise ExpressionError(
                operation,
                f"the shapes differ in dimension {position}, counted from the last",
                got=" and ".join(_shown(shape) for shape in shapes),
                expected="equal extents, or one of them 1",
                hint=None if all(isinstance(extent, int) for extent in wide)
                else "extents that are variables must be the same expression",
            )  # fmt: skip
        result.append(wide[0] if wide else 1)
    return tuple(reversed(result))


def element_indices(shape: Shape, axes: Sequence[Axis]) -> tuple[Axis | Expr, ...]:
    """Return the indices into a tensor for the point `axes` of the common shape."""
    aligned = axes[len(axes) - len(shape) :]
    return tuple(
        index_const(0) if is_one(extent) else axis
        for extent, axis in zip(shape, aligned, strict=True)
    )


def same_extent(a: Extent, b: Extent) -> bool:
    """Tell whether two extents are known to be equal."""
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == b
    return a is b or structural_equal(a, b, rename=False)


def _shown(shape: Shape) -> str:
    return f"({', '.join(str(extent) for extent in shape)}{',' if len(shape) == 1 else ''})"
