"""Width, axis and legend of the pictures of an accelerator's cycles."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dlcompiler.views.device.timeline_lanes import color_of_group
from dlcompiler.views.render.scene import Mark
from dlcompiler.views.render.text import shortened
from dlcompiler.views.tuning.chart import Scale, legend, line, text

WIDTH, LEFT, RIGHT = 760.0, 74.0, 22.0
"""Width of a picture, and of what stands beside its cycles; [px]."""
CHAR = 6.8
"""Width of a letter; [px]."""
_MOST_GROUPS = 12
"""Stages that the legend names; [1]."""


class CyclePicture:
    """Marks above an axis of cycles, in the colours of the stages that instructions come from.

    Parameters
    ----------
    first, last
        The first cycle, and the one before which the picture ends; [clock].
    groups
        Names of the groups of instructions.
    stages
        Those of them that are stages.
    """

    def __init__(
        self, first: int, last: int, groups: Sequence[str], stages: Collection[str]
    ) -> None:
        self.x = Scale(first, max(last, first + 1), LEFT, WIDTH - RIGHT)
        self.marks: list[Mark] = []
        self.groups, self.stages = groups, stages

    def keys_of_group(self, group: int) -> list[str]:
        """Return the key of the stage that instructions come from; none without a stage."""
        name = self.groups[group]
        return [name] if name in self.stages else []

    def axis(self, y: float, provenance: str) -> float:
        """Draw the axis of cycles, and return where it ends; [px]."""
        self.marks.append(line(self.x.start, y, self.x.end, y, "axis"))
        for value in self.x.ticks(8):
            at, words = self.x.at(value), f"{value:,.0f}"
            is_cut = at + len(words) * CHAR / 2 > WIDTH
            self.marks.append(line(at, y, at, y + 4))
            place = WIDTH - 2 if is_cut else at
            self.marks.append(text(place, y + 17, words, "end" if is_cut else "middle"))
        label = shortened(f"cycles ({provenance})", 90)
        self.marks.append(text(self.x.end, y + 34, label, "end", "label"))
        return y + 44

    def legend(self, y: float, shown: Sequence[int]) -> float:
        """Draw the colours of some groups, and return where the legend ends; [px]."""
        if not shown:
            return y
        samples: list[tuple[str, Mark]] = [
            (shortened(self.groups[n], 28),
             {"shape": "rect", "role": "cell", "w": 11, "h": 11, "fill": color_of_group(n),
              "keys": self.keys_of_group(n)})
            for n in shown[:_MOST_GROUPS]
        ]  # fmt: skip
        marks = legend(samples, 4, y + 10, WIDTH - 8)
        for mark in marks:
            if mark["shape"] == "rect":
                mark["y"] -= 5
        end = max(mark["y"] for mark in marks)
        if len(shown) > _MOST_GROUPS:
            end += 18
            marks.append(text(4, end, f"and {len(shown) - _MOST_GROUPS} more"))
        self.marks += marks
        return end + 8
