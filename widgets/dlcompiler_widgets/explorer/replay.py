"""A page that replays a workbench from a file: no kernel, no server, no network."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dlcompiler.views.render.html import history_html, tree_html
from dlcompiler.views.render.markup import Markup, tag
from dlcompiler_widgets.assets import WORKBENCH_SHEETS, module, styles
from dlcompiler_widgets.explorer.progress import Watch
from dlcompiler_widgets.explorer.recording import Limits, record
from dlcompiler_widgets.explorer.snapshot import places_of

if TYPE_CHECKING:
    from dlcompiler_widgets.explorer.session import Session

STYLE = """
body { margin: 12px auto; padding: 0 12px; max-width: 1600px; background: Canvas; color: CanvasText;
  font: 14px/1.5 system-ui, sans-serif; }
:root { color-scheme: light dark; }
"""


@dataclass(frozen=True)
class ReplayPage:
    """A replay page: its HTML, its number of states, and what was left out."""

    html: str
    states: int
    left_out: tuple[str, ...]
    """What there was no room or no time for: ``12 comparisons`` …"""
    limit: str = ""
    """The limit that was reached: ``30 s``, ``4 MB``."""

    @property
    def summary(self) -> str:
        """A sentence that says what the page contains."""
        size = len(self.html.encode())
        text = f"{self.states} states, {size / 1000:,.0f} kB"
        if not self.left_out:
            return text
        return f"{text}; left out at the limit of {self.limit}: {', '.join(self.left_out)}"

    def __repr__(self) -> str:
        return f"ReplayPage({self.summary})"


def replay_page(
    session: Session,
    panes: Sequence[str],
    kinds: Sequence[str],
    limits: Limits | None = None,
    watch: Watch | None = None,
) -> ReplayPage:
    """Return the page of a session.

    Parameters
    ----------
    session
        The session.
    panes
        Names of the panes that it shows.
    kinds
        Names of the exports that are in it.
    limits
        When to stop recording.
    watch
        Follows the recording in the background.

    Notes
    -----
    All data is JSON in an element that is not executed, with each ``<`` escaped, so that no name in
    it can end the element. The content security policy allows one script, by its hash, and no
    request.
    """
    with session.schedule.lock:  # the states of this moment, as the recording has them
        title = f"{session.name} on {session.target.name}"
        still = (
            tree_html(session.tree),
            history_html(session.schedule.history, session.predictions.of(session)),
        )
    data = record(session, panes, kinds, limits, watch)
    script = f"\n{module('replay')}\n"
    if "</script" in script.lower() or "<!--" in script:
        raise ValueError("a script may not hold the end of its element")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    recording = json.dumps({**data, "panes": places_of(panes)}, separators=(",", ":"))
    states = len(data["states"])
    left_out = tuple(data["left_out"])
    head = tag(
        "head",
        None,
        tag("meta", {"charset": "utf-8"}),
        tag("meta", {"http-equiv": "Content-Security-Policy", "content": policy}),
        tag("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        tag("title", None, f"{title}: a recording"),
        tag("style", None, Markup(STYLE + styles(*WORKBENCH_SHEETS, "replay"))),
    )
    body = tag(
        "body",
        None,
        tag("p", None, _introduction(title, states, left_out, data["limit"])),
        tag("div", {"id": "workbench"}, *still),
        tag("script", {"type": "application/json", "id": "recording"}, _escaped(recording)),
        tag("script", {"type": "module"}, Markup(script)),
    )
    html = f"<!DOCTYPE html>\n{tag('html', {'lang': 'en'}, head, body)}\n"
    return ReplayPage(html, states, left_out, data["limit"])


def _introduction(title: str, states: int, left_out: Sequence[str], limit: str) -> str:
    text = f"A recording of {title}: {states} states. Actions that need a kernel are marked."
    if not left_out:
        return text
    return f"{text} Not recorded, because of its limit of {limit}: {', '.join(left_out)}."


def _escaped(text: str) -> Markup:
    """Escape JSON so that no part of it can be read as HTML markup."""
    return Markup(text.replace("<", "\\u003c"))
