"""Let screen readers say what the theme and Markdown leave without a name.

The theme's buttons that open a part of the side bar are triangles without words, and the empty
corner of a Markdown table is a heading without text.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

TRIANGLE = "<summary><span"
NAMED = '<summary aria-label="The pages of this part"><span'
EMPTY_HEADING = re.compile(r"<th\b([^>]*)>(\s*(?:<p>\s*</p>)?\s*)</th>")


def named(toctree: Callable[..., object]) -> Callable[..., object]:
    """Return a function that writes a tree of pages, and names the buttons that open its parts."""

    def write(kind: str, *args: object, **options: object) -> object:
        written = toctree(kind, *args, **options)
        return written if kind == "raw" else str(written).replace(TRIANGLE, NAMED)

    return write


def without_empty_headings(body: str) -> str:
    """Return HTML in which a heading of a table that has no text is a plain cell."""
    return EMPTY_HEADING.sub(r"<td\1>\2</td>", body)


def mend(
    app: Sphinx, name: str, template: str, context: dict[str, object], tree: nodes.document | None
) -> None:
    """Mend a page before its template is filled."""
    del app, name, template, tree
    toctree, body = context.get("generate_toctree_html"), context.get("body")
    if callable(toctree):
        context["generate_toctree_html"] = named(toctree)
    if isinstance(body, str):
        context["body"] = without_empty_headings(body)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Mend each page, after the theme has added its functions."""
    app.connect("html-page-context", mend, priority=900)
    return {"version": "1", "parallel_read_safe": True}
