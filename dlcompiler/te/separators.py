"""`AXIS_SEPARATOR`: where one physical dimension of a layout ends and the next begins."""

from __future__ import annotations


class AxisSeparator:
    """Stands between the axes of a layout; `AXIS_SEPARATOR` is the only one."""

    def __repr__(self) -> str:
        return "te.AXIS_SEPARATOR"


AXIS_SEPARATOR = AxisSeparator()
"""In ``s[P].transform_layout(lambda i, j: [i, te.AXIS_SEPARATOR, j])``: the axes before it become
one dimension of the memory, those behind it another."""
