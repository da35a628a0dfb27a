"""A page that replays a workbench from a file: no kernel, no server, no network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dlcompiler.views.render.html import history_html, tree_html
from dlcompiler_widgets.assets import WORKBENCH_SHEETS
from dlcompiler_widgets.explorer.progress import Watch
from dlcompiler_widgets.explorer.recording import Limits, record
from dlcompiler_widgets.explorer.snapshot import places_of
from dlcompiler_widgets.recorded_page import recorded_page

if TYPE_CHECKING:
    from dlcompiler_widgets.explorer.session import Session


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
    """
    with session.schedule.lock:  # the states of this moment, as the recording has them
        title = f"{session.name} on {session.target.name}"
        still = (
            tree_html(session.tree),
            history_html(session.schedule.history, session.predictions.of(session)),
        )
    data = record(session, panes, kinds, limits, watch)
    states = len(data["states"])
    left_out = tuple(data["left_out"])
    html = recorded_page(
        title, _introduction(title, states, left_out, data["limit"]), still,
        {**data, "panes": places_of(panes)}, entry="replay", sheets=(*WORKBENCH_SHEETS, "replay"),
    )  # fmt: skip
    return ReplayPage(html, states, left_out, data["limit"])


def _introduction(title: str, states: int, left_out: Sequence[str], limit: str) -> str:
    text = f"A recording of {title}: {states} states. Actions that need a kernel are marked."
    if not left_out:
        return text
    return f"{text} Not recorded, because of its limit of {limit}: {', '.join(left_out)}."
