"""Levels and presets: which panes, pictures and primitives the workbench shows.

A level or a preset only hides panes, tabs and primitives. The schedule, its history, the chosen
loop and the open tabs stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dlcompiler.errors import ScheduleError
from dlcompiler.schedule.primitives import REGISTRY

Json = dict[str, Any]


@dataclass(frozen=True)
class Level:
    """The panes, pictures and primitives that a level shows."""

    text: str
    about: str
    only: frozenset[str] | None = None
    """The panes of the grid that the level shows; None for all."""
    without: frozenset[str] = frozenset()
    """Panes of the grid that it leaves out although `only` has them."""
    pictures: frozenset[str] | None = None
    """The tabs of pictures; None for all."""
    texts: frozenset[str] | None = None
    """The tabs of texts; None for all."""
    primitives: frozenset[str] = frozenset(REGISTRY)


FIRST = frozenset({"split", "reorder", "parallel", "vectorize"})
RARE = frozenset(
    {
        "align_extent", "compute_group_at", "compute_group_root", "create_group", "double_buffer",
        "prefetch", "pragma", "rolling_buffer", "set_scope", "storage_align", "transform_layout",
    }
)  # fmt: skip
"""Primitives about the storage of buffers, groups and notes at loops, for the last few per cent."""

ON_CHIP = frozenset({"bind", "cache_read", "compute_at", "double_buffer", "set_scope", "tensorize"})
"""Primitives without which nothing runs on an accelerator, at any level."""

STRIPS = frozenset({"ladder"})
"""Panes that show what a picture tab shows: where there is the tab, the picture has their room."""

LEVELS: dict[str, Level] = {
    "learn": Level(
        "learn",
        "the loop nest, its program, one picture, the measured times, and four primitives",
        only=frozenset({"tree", "picture", "text", "moves", "ladder"}),
        pictures=frozenset({"space", "off"}),
        texts=frozenset({"notation", "loops", "python"}),
        primitives=FIRST,
    ),
    "work": Level(
        "work",
        "all panes; the rare primitives about storage are left out",
        without=STRIPS,
        primitives=frozenset(REGISTRY) - RARE,
    ),
    "all": Level("all", "all panes and all primitives", without=STRIPS),
}


def known_level(name: str) -> str:
    """Return the name of a level, or raise a ScheduleError that says which ones there are."""
    if name in LEVELS:
        return name
    raise ScheduleError(
        "choose a level", "there is no such level", got=repr(name), expected=", ".join(LEVELS)
    )


def primitives_at(name: str, *, on_chip: bool = False) -> frozenset[str]:
    """Return the primitives that a level offers, for an accelerator or another target."""
    return LEVELS[name].primitives | (ON_CHIP if on_chip else frozenset())


def more_at(name: str, *, on_chip: bool = False) -> str:
    """Return how many primitives other levels offer besides those of this one; '' if none does.

    Examples
    --------
    >>> more_at("learn"), more_at("all")
    ('More kinds of move: 13 at level “work”, 24 at level “all”', '')
    """
    own = primitives_at(name, on_chip=on_chip)
    more = {each: len(level.primitives - own) for each, level in LEVELS.items()}
    texts = [f"{count} at level “{each}”" for each, count in more.items() if count]
    return f"More kinds of move: {', '.join(texts)}" if texts else ""


@dataclass(frozen=True)
class Preset:
    """A named selection of panes."""

    text: str
    only: frozenset[str] | None


PRESETS: dict[str, Preset] = {
    "all": Preset("all panes", None),
    "picture": Preset("nest and picture", frozenset({"tree", "moves", "picture", "ladder"})),
    "code": Preset("nest and code", frozenset({"tree", "moves", "text"})),
    "history": Preset("history, advice", frozenset({"tree", "moves", "history", "advice"})),
}


@dataclass(frozen=True)
class Layout:
    """The chosen level and the chosen preset."""

    level: str = "work"
    preset: str = "all"

    def shows(self, pane: str) -> bool:
        """Return whether both the level and the preset show a pane of the grid."""
        level = LEVELS[self.level]
        chosen = (level.only, PRESETS[self.preset].only)
        return pane not in level.without and all(only is None or pane in only for only in chosen)

    def pictures(self, tabs: Iterable[str]) -> list[str]:
        """Return those of the given picture tabs that the level shows; all if it shows none."""
        return _those_in(LEVELS[self.level].pictures, tabs)

    def texts(self, tabs: Iterable[str]) -> list[str]:
        """Return those of the given text tabs that the level shows; all if it shows none."""
        return _those_in(LEVELS[self.level].texts, tabs)

    def to_json(self) -> Json:
        """Return the data for the bar: all levels and presets, and the chosen ones."""
        return {
            "level": self.level,
            "levels": [
                {"name": name, "text": each.text, "about": each.about}
                for name, each in LEVELS.items()
            ],
            "preset": self.preset,
            "presets": [{"name": name, "text": each.text} for name, each in PRESETS.items()],
        }


def _those_in(only: frozenset[str] | None, tabs: Iterable[str]) -> list[str]:
    given = list(tabs)
    return [name for name in given if only is None or name in only] or given
