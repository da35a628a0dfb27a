"""A page of HTML that replays a recording from a file: no kernel, no server, no network."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from dlcompiler.views.render.markup import Markup, tag
from dlcompiler_widgets.assets import module, styles

STYLE = """
body { margin: 12px auto; padding: 0 12px; max-width: 1600px; background: Canvas; color: CanvasText;
  font: 14px/1.5 system-ui, sans-serif; }
:root { color-scheme: light dark; }
"""


def recorded_page(
    title: str, introduction: str, still: Sequence[Markup], data: Mapping[str, Any], *,
    entry: str, sheets: Sequence[str],
) -> str:  # fmt: skip
    """Return a page that replays a recording.

    Parameters
    ----------
    title : str
        Of the page.
    introduction : str
        What stands above the widget.
    still : sequence of Markup
        What is shown where no script runs.
    data : mapping
        The recording, as values that ``json`` can write.
    entry : str
        Name of the module of ``js/`` that shows it.
    sheets : sequence of str
        Names of style sheets.

    Notes
    -----
    All data is JSON in an element that is not executed, with each ``<`` escaped, so that no name in
    it can end the element. The content security policy allows one script, by its hash, and no
    request.
    """
    script = f"\n{module(entry)}\n"
    if "</script" in script.lower() or "<!--" in script:
        raise ValueError("a script may not hold the end of its element")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    recording = json.dumps(data, separators=(",", ":"))
    head = tag(
        "head",
        None,
        tag("meta", {"charset": "utf-8"}),
        tag("meta", {"http-equiv": "Content-Security-Policy", "content": policy}),
        tag("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        tag("title", None, f"{title}: a recording"),
        tag("style", None, Markup(STYLE + styles(*sheets))),
    )
    body = tag(
        "body",
        None,
        tag("p", None, introduction),
        tag("div", {"id": "workbench"}, *still),
        tag("script", {"type": "application/json", "id": "recording"}, _escaped(recording)),
        tag("script", {"type": "module"}, Markup(script)),
    )
    return f"<!DOCTYPE html>\n{tag('html', {'lang': 'en'}, head, body)}\n"


def _escaped(text: str) -> Markup:
    """Escape JSON so that no part of it can be read as HTML markup."""
    return Markup(text.replace("<", "\\u003c"))
