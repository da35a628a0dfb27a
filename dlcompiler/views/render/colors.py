"""Colours of axes: one hue for each original axis, the same in every view.

The children of a split keep the hue; inner ones are lighter. An axis of a stage that its reader
indexes by one of its own axes has that axis' hue, since it is the same dimension.

The hues are Okabe and Ito's, which can be distinguished with the common kinds of colour blindness.
Some are pale on white, so they fill marks with an outline, and never colour text alone.

**Source:** M. Okabe, K. Ito, "Color Universal Design", 2008, the palette of eight without black.
"""

from __future__ import annotations

from typing import TypeAlias

from dlcompiler.ir import Axis, Var
from dlcompiler.schedule import StageState, State
from dlcompiler.schedule.inference.inlining import bodies, consumers, loads_of
from dlcompiler.schedule.state import Launched, Singleton, Split

HUES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442")
SIGN_COLORS = {"▦": "#0072B2", "▸": "#D55E00", "▹": "#009E73"}
"""Edges of the kinds of loops that are bound to thread axes, by their signs in the loop tree."""
_LIGHTER = 0.42
"""Share by which the colour of an inner axis is moved from its parent's toward white."""

Colors: TypeAlias = tuple[str, ...]
"""``#rrggbb``, one for each original axis: a fused axis has several."""


def axis_colors(state: State) -> dict[str, dict[Axis, Colors]]:
    """Return the colours of every axis of every stage, by stage name."""
    hues = _Hues(state)
    return {
        stage.name: _family(stage, hues.of)
        for stage in reversed(state.stages)
        if not stage.is_placeholder
    }


class _Hues:
    """Assigns hues to the original axes, consumers first."""

    def __init__(self, state: State) -> None:
        self.of: dict[Axis, str] = {}
        self.state = state
        self.used = 0
        for stage in reversed(state.stages):
            for n, axis in enumerate(stage.op.axis):
                self.of[axis] = self._inherited(stage, n) or self._next()
            for axis in stage.op.reduce_axis:
                if axis not in self.of:
                    self.of[axis] = self._next()

    def _next(self) -> str:
        self.used += 1
        return HUES[(self.used - 1) % len(HUES)]

    def _inherited(self, stage: StageState, dimension: int) -> str | None:
        for consumer in consumers(self.state, stage):
            axes = {axis.var: axis for axis in (*consumer.op.axis, *consumer.op.reduce_axis)}
            for load in loads_of(bodies(self.state)[consumer.name]):
                index = load.indices[dimension] if load.tensor in stage.tensors else None
                if isinstance(index, Var) and index in axes:
                    return self.of.get(axes[index])
        return None


def _family(stage: StageState, hues: dict[Axis, str]) -> dict[Axis, Colors]:
    colors: dict[Axis, Colors] = {
        axis: (hues[axis],) for axis in (*stage.op.axis, *stage.op.reduce_axis)
    }
    for relation in stage.relations:
        if isinstance(relation, Split):
            parent = colors[relation.parent]
            colors[relation.outer] = parent
            colors[relation.inner] = tuple(lighter(color) for color in parent)
        elif isinstance(relation, Singleton | Launched):
            colors[relation.axis] = ("#888888",)
        else:
            both = (*colors[relation.outer], *colors[relation.inner])
            colors[relation.fused] = tuple(dict.fromkeys(both))
    return colors


def lighter(color: str) -> str:
    """Return a colour moved toward white.

    Examples
    --------
    >>> lighter("#000000")
    '#6B6B6B'
    """
    channels = (int(color[n : n + 2], 16) for n in (1, 3, 5))
    return "#" + "".join(f"{round(c + (255 - c) * _LIGHTER):02X}" for c in channels)


def ink_on(fill: str) -> str:
    """Return black or white: the one in which a text on a colour has more contrast.

    **Source:** WCAG 2.2, relative luminance; the contrasts are equal at a luminance of 0.179.

    Examples
    --------
    >>> ink_on("#0072B2"), ink_on("#56B4E9")
    ('#FFFFFF', '#000000')
    """
    channels = (int(fill[n : n + 2], 16) / 255 for n in (1, 3, 5))
    linear = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    luminance = sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    return "#000000" if luminance > 0.179 else "#FFFFFF"


_RAMP = (
    "#440154", "#472D7B", "#3B528B", "#2C728E", "#21918C", "#28AE80", "#5EC962", "#ADDC30",
    "#FDE725",
)  # fmt: skip


def ramp(part: float) -> str:
    """Return the colour of a share between 0 (dark) and 1 (light).

    **Source:** matplotlib, viridis at eighths; in between, the channels are mixed.

    Examples
    --------
    >>> ramp(0), ramp(0.5), ramp(1)
    ('#440154', '#21918C', '#FDE725')
    """
    place = min(max(part, 0.0), 1.0) * (len(_RAMP) - 1)
    n = min(int(place), len(_RAMP) - 2)
    low, high = (tuple(int(color[k : k + 2], 16) for k in (1, 3, 5)) for color in _RAMP[n : n + 2])
    mixed = (round(a + (b - a) * (place - n)) for a, b in zip(low, high, strict=True))
    return "#" + "".join(f"{channel:02X}" for channel in mixed)
