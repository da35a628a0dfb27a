"""Safe construction of HTML and SVG: text becomes markup only through `tag`, which escapes it.

The output is also well-formed XML, which the tests parse.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import TypeAlias

Attributes: TypeAlias = Mapping[str, str | int | float | None]

# Characters that XML forbids, even as references.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class Markup(str):
    """Text that is already HTML; only `tag` and `join` make it."""

    __slots__ = ()


def escape(text: str) -> Markup:
    """Return `text` as markup that shows it literally.

    Examples
    --------
    >>> escape("a < b")
    'a &lt; b'
    """
    return Markup(html.escape(_FORBIDDEN.sub("\ufffd", text), quote=True))


def tag(name: str, attributes: Attributes | None = None, *children: str) -> Markup:
    """Return an element; children that are not `Markup` are escaped.

    Parameters
    ----------
    name
        Name of the element, a constant of the calling code.
    attributes
        Values by attribute name; one that is None is left out.
    *children
        Text or markup.

    Examples
    --------
    >>> tag("td", {"class": "name"}, "<img>")
    '<td class="name">&lt;img&gt;</td>'
    """
    written = "".join(
        f' {key}="{escape(str(value))}"'
        for key, value in (attributes or {}).items()
        if value is not None
    )
    if not children:
        return Markup(f"<{name}{written}/>" if name in _VOID else f"<{name}{written}></{name}>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def heading(text: str, style: str | None = None) -> Markup:
    """Return the heading of a column; one without text is no heading for screen readers.

    Examples
    --------
    >>> heading("step"), heading("")
    ('<th scope="col">step</th>', '<td></td>')
    """
    return tag("th", {"scope": "col", "style": style}, text) if text else tag("td")


_VOID = {"br", "circle", "hr", "img", "line", "meta", "path", "rect"}


def join(*parts: str) -> Markup:
    """Return parts one after another; those that are not `Markup` are escaped."""
    return Markup("".join(part if isinstance(part, Markup) else escape(part) for part in parts))
