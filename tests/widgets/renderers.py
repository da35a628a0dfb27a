"""What renderers that cannot be run here show of a cell's outputs, by the rules that they publish.

Each renderer shows one type of each output: the first one of its order. Some remove elements and
attributes of HTML that are not in a list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from html.parser import HTMLParser

VOID = frozenset({"br", "hr", "img", "wbr"})
_LIST = """
h1 h2 h3 h4 h5 h6 br b i strong em a pre code img tt div ins del sup sub p ol ul li table thead
tbody tfoot tr td th blockquote dl dt dd kbd q samp var hr s strike summary details caption figure
figcaption abbr cite dfn mark small span time wbr
"""
ALLOWED = frozenset(_LIST.split())
"""Elements of GitHub's list for HTML that users write.
**Source:** html-pipeline, SanitizationFilter; github/markup, README."""
ATTRIBUTES = frozenset({"alt", "align", "colspan", "height", "href", "open", "rowspan", "scope",
                        "span", "src", "title", "valign", "width"})  # fmt: skip
DROPPED = frozenset({"script", "style", "svg"})
"""Elements that are removed with all that is in them."""


@dataclass(frozen=True)
class Renderer:
    """How a renderer shows a notebook without a kernel."""

    order: Sequence[str]
    """The types that it shows, the first choice first."""
    is_cleaning: bool = False
    """Whether it removes what is not in the lists above."""
    shows_data: bool = True
    """Whether it shows images whose data is in their address."""

    def shown(self, data: Mapping[str, str]) -> tuple[str, str]:
        """Return the type that is shown of an output, and what is left of it."""
        kind = next(kind for kind in self.order if kind in data)
        if kind != "text/html" or not self.is_cleaning:
            return kind, data[kind]
        cleaner = _Cleaner(shows_data=self.shows_data)
        cleaner.feed(data[kind])
        return kind, "".join(cleaner.kept)


class _Cleaner(HTMLParser):
    """Keeps elements and attributes that are allowed, and the text of the others."""

    def __init__(self, *, shows_data: bool) -> None:
        super().__init__()
        self.shows_data = shows_data
        self.kept: list[str] = []
        self.dropped = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in DROPPED:
            self.dropped += 1
        elif tag in ALLOWED and not self.dropped:
            own = "".join(f' {name}="{escape(value or "")}"' for name, value in attrs
                          if name in ATTRIBUTES and self._may_be(value or ""))  # fmt: skip
            self.kept.append(f"<{tag}{own}{'/' if tag in VOID else ''}>")

    def _may_be(self, value: str) -> bool:
        return self.shows_data or not value.startswith("data:")

    def handle_endtag(self, tag: str) -> None:
        if tag in DROPPED:
            self.dropped -= 1
        elif tag in ALLOWED - VOID and not self.dropped:
            self.kept.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if not self.dropped:
            self.kept.append(escape(data, quote=False))


_VIEW = "application/vnd.jupyter.widget-view+json"
_OF_NBCONVERT = ("application/javascript", "text/html", "text/markdown", "image/svg+xml",
                 "text/latex", "image/png", "image/jpeg", "text/plain")  # fmt: skip
"""**Source:** nbconvert 7, HTMLExporter.default_config, without the type of live widgets."""
RENDERERS = {
    # It shows widgets only with a kernel, or with the state that the notebook stores.
    "VS Code": Renderer(
        ("text/html", "application/javascript", "image/svg+xml", "text/latex", "text/markdown",
         "image/png", "image/jpeg", "application/json", "text/plain"),
    ),
    "VS Code, widgets first": Renderer((_VIEW, "text/html", "text/plain")),
    "nbviewer": Renderer(_OF_NBCONVERT),
    "GitHub": Renderer(_OF_NBCONVERT, is_cleaning=True),
    "GitHub, by its rules for text": Renderer(_OF_NBCONVERT, is_cleaning=True, shows_data=False),
}  # fmt: skip
"""**Source:** of VS Code, vscode-jupyter, the order of MIME types in its notebook serializer.
GitHub publishes no rules for notebooks: the last two are what was seen, and its strictest rules."""
