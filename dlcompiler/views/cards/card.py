"""View model of an object as a card: a sentence, facts, a picture and tables.

All objects but programs are shown as cards. A card is complete without its picture, which some
hosts remove.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

from dlcompiler.views.loops.nest_picture import MONO
from dlcompiler.views.render.markup import Markup, tag
from dlcompiler.views.render.scene import Scene, Table, scene_html, table_html

Tone = Literal["plain", "good", "bad", "open"]
"""Colour of a verdict: good (yes), bad (no) or pending (yes, with an obligation)."""

_EDGES: dict[Tone, str] = {"good": "#009E73", "bad": "#D55E00", "open": "#E69F00"}
_CODE = f"font-family:{MONO};font-size:12px;line-height:1.5;margin:4px 0;overflow-x:auto"
_MOST_SHOWN = 12
"""Rows above which a table can be folded; all tables but the first begin folded."""
_LINE = {"style": "margin:4px 0"}


class Card(TypedDict):
    """The card of an object."""

    title: str
    text: str
    """A description of the object, after the title."""
    tone: Tone
    facts: list[tuple[str, str]]
    """Further lines, each with its label."""
    scene: Scene | None
    tables: list[tuple[str, Table]]
    """With a caption each."""
    code: str
    """Lines of a program, or ''."""


def card(
    title: str,
    text: str,
    *,
    tone: Tone = "plain",
    facts: Sequence[tuple[str, str | None]] = (),
    scene: Scene | None = None,
    tables: Sequence[tuple[str, Table]] = (),
    code: str = "",
) -> Card:
    """Return a card; facts without a text are left out.

    Examples
    --------
    >>> card("Legal", "the step may be made", tone="good", facts=[("hint", None)])["facts"]
    []
    """
    known = [(label, value) for label, value in facts if value]
    return {"title": title, "text": text, "tone": tone, "facts": known, "scene": scene,
            "tables": list(tables), "code": code}  # fmt: skip


def card_html(model: Card) -> Markup:
    """Return a card as a fragment without script and ``id``."""
    edge = _EDGES.get(model["tone"])
    style = f"border-left:4px solid {edge};padding-left:8px" if edge else None
    parts = [tag("p", _LINE, tag("strong", None, model["title"]), f" — {model['text']}")]
    if model["facts"]:
        rows = [
            tag("tr", None, _cell("th", label, {"scope": "row"}), _cell("td", text, {}))
            for label, text in model["facts"]
        ]
        parts.append(
            tag(
                "table",
                {"class": "dlc-facts", "style": "border-spacing:8px 2px"},
                tag("tbody", None, *rows),
            )
        )
    if model["code"]:
        parts.append(tag("pre", {"style": _CODE}, model["code"]))
    if model["scene"]:
        parts.append(scene_html(model["scene"]))
    parts += [
        _captioned(caption, table, is_first=n == 0)
        for n, (caption, table) in enumerate(model["tables"])
    ]
    return tag("div", {"class": "dlc-fragment", "style": style}, *parts)


def _cell(name: str, text: str, attributes: dict[str, str]) -> Markup:
    return tag(name, {**attributes, "style": "text-align:left;vertical-align:top"}, text)


def _captioned(caption: str, table: Table, *, is_first: bool) -> Markup:
    shown = table_html(table["columns"], table["rows"])
    if len(table["rows"]) <= _MOST_SHOWN:
        small = {"style": "font-size:12px;opacity:.8;margin:8px 0 2px"}
        return tag("div", None, tag("p", small, caption), shown)
    summary = tag("summary", {"style": "cursor:pointer;font-size:12px"}, caption)
    return tag("details", {"open": "open" if is_first else None}, summary, shown)
