"""Layouts of the operands of operators, with extents that may not be known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from dlcompiler.errors import ExpressionError, GraphError
from dlcompiler.graph.ir.attributes import AttrValue
from dlcompiler.graph.ir.types import ANY, Dimension, TensorType, Type
from dlcompiler.graph.operators.base import CallTypes, Result
from dlcompiler.ops import layouts
from dlcompiler.ops.layouts import Layout

Extents: TypeAlias = dict[str, Dimension]
"""Letter of a dimension -> its extent."""


def layout_of(text: str) -> Layout:
    """Read a layout.

    Raises
    ------
    GraphError
        If the text is none.

    Examples
    --------
    >>> layout_of("NCHW16c").factor("C")
    16
    """
    try:
        return layouts.layout_of(text)
    except ExpressionError as error:
        raise GraphError(
            error.operation, error.problem, got=error.got, expected=error.expected
        ) from None


def layout_with(call: CallTypes, attribute: str, letters: str) -> Layout:
    """Return the layout that an attribute names; its dimensions must be these letters."""
    layout = layout_of(call.attrs[attribute])
    if sorted(layout.dimensions) != sorted(letters):
        call.fail(
            f"{attribute} has other dimensions", got=repr(layout.text),
            expected=f"{letters}, in any order, or with blocks",
        )  # fmt: skip
    return layout


def extents_of(call: CallTypes, i: int, layout: Layout) -> Extents:
    """Return the extents of the dimensions of argument `i`, which is stored in a layout."""
    kind = call.tensor(i)
    if kind.rank != len(layout.axes):
        call.fail(f"argument {call.name(i)} does not have the dimensions of {layout}")
    sizes = dict(zip(layout.axes, kind.shape, strict=True))
    for axis, factor in zip(layout.axes, layout.factors, strict=True):
        if factor and sizes[axis] not in (factor, ANY):
            call.fail(f"argument {call.name(i)} has blocks of {sizes[axis]}, not of {layout}")
    found: Extents = {}
    for axis in layout.dimensions:
        outer = sizes[axis]
        found[axis] = outer * layout.factor(axis) if isinstance(outer, int) else ANY
    return found


def shape_in(
    call: CallTypes, layout: Layout, extents: Mapping[str, Dimension]
) -> tuple[Dimension, ...]:
    """Return the shape of a tensor in a layout, whose blocks must divide the extents."""
    shape: list[Dimension] = []
    for axis, factor in zip(layout.axes, layout.factors, strict=True):
        extent = extents[axis.upper()]
        inner = layout.factor(axis.upper())
        if factor:
            shape.append(factor)
        elif isinstance(extent, int):
            if extent % inner:
                call.fail(f"{layout} does not divide dimension {axis}, whose extent is {extent}")
            shape.append(extent // inner)
        else:
            shape.append(ANY)
    return tuple(shape)


@dataclass(frozen=True, slots=True)
class Layouts:
    """The layouts that a call has for another layout of its data."""

    inputs: tuple[str, ...]
    """Layout of each argument; "" for one whose dimensions have no names, which stays as it is."""
    outputs: tuple[str, ...]
    """Layout of each output."""
    attrs: Mapping[str, AttrValue] = field(default_factory=dict)
    """Attributes that then have another value."""


LayoutRule: TypeAlias = Callable[[Result, tuple[str, ...], str], Layouts | None]
"""Returns the layouts of a call for another layout of its data.

Its arguments are the call, the layouts that its arguments have now ("" for none), and the layout
that argument 0, or the first field of it, shall have. None if the call cannot have it."""


# -- rules ----------------------------------------------------------------------------------------


def same_layouts(outputs: int = 1) -> LayoutRule:
    """Return the rule of an operator that does the same with each element."""
    return lambda call, current, wanted: Layouts((wanted,), (wanted,) * outputs)


def axis_layouts(parameters: int, outputs: int = 0) -> LayoutRule:
    """Return the rule of an operator along an axis, with numbers for each index of it.

    Parameters
    ----------
    parameters : int
        Number of arguments that have a number for each index along the axis.
    outputs : int
        Number of outputs of that kind, behind the first.
    """

    def rule(call: Result, current: tuple[str, ...], wanted: str) -> Layouts | None:
        axis = moved_axis(call, current[0], wanted)
        if axis is None:
            return None
        names = ("",) * parameters
        return Layouts((wanted, *names), (wanted, *("",) * outputs), {"axis": axis})

    return rule


def moved_axis(call: Result, current: str, wanted: str, *, may_split: bool = False) -> int | None:
    """Return where the axis of a call is in another layout; None if it is split there."""
    if not current:
        return None
    old, new = layout_of(current), layout_of(wanted)
    letter = old.axes[call.attrs["axis"] % len(old.axes)]
    if sorted(old.dimensions) != sorted(new.dimensions) or not letter.isupper():
        return None
    if not may_split and (old.factor(letter) > 1 or new.factor(letter) > 1):
        return None
    return new.index(letter)


def broadcast_layouts(count: int) -> LayoutRule:
    """Return the rule of an operator on `count` operands that are broadcast.

    An operand of fewer dimensions has the last ones of the layout. One whose extent is 1 in a
    dimension that the layout splits cannot have the layout.
    """

    def rule(call: Result, current: tuple[str, ...], wanted: str) -> Layouts | None:
        rank = call.tensor.rank
        layout = layout_of(wanted)
        old = next((text for text in current if text and len(layout_of(text).axes) == rank), "")
        if not old or sorted(layout_of(old).dimensions) != sorted(layout.dimensions):
            return None
        found = [_operand(call.inputs[i], layout_of(old), layout) for i in range(count)]
        if None in found:
            return None
        return Layouts(tuple(text or "" for text in found), (wanted,))

    return rule


def _operand(kind: Type, old: Layout, new: Layout) -> str | None:
    """Return the layout of an operand that is broadcast to another one; None if it has none."""
    assert isinstance(kind, TensorType)
    axes = old.axes[len(old.axes) - kind.rank :]
    letters = [axis for axis in axes if axis.isupper()]
    if any(axis.upper() not in axes for axis in axes):
        return None
    sizes = dict(zip(axes, kind.shape, strict=True))
    for letter in letters:
        extent, block = sizes[letter], new.factor(letter)
        whole = extent * old.factor(letter) if isinstance(extent, int) else ANY
        if block > 1 and (not isinstance(whole, int) or whole % block):
            return None
    kept = [
        f"{factor or ''}{axis}"
        for axis, factor in zip(new.axes, new.factors, strict=True)
        if axis.upper() in letters
    ]
    leading = new.axes[len(new.axes) - len(kept) :]
    # Dimensions are aligned from the last: those that the operand has must be the last ones.
    is_aligned = all(axis.upper() in letters for axis in leading)
    return "".join(kept) if is_aligned else None
