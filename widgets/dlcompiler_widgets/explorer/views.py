"""Which of a widget's views are on a page: a widget that no page shows need not be drawn."""

from __future__ import annotations

from typing import Any


class Views:
    """Counts the views of a widget that a page has opened and closed.

    A page that is loaded again, or whose browser ends, closes no view: a widget may then be taken
    for shown although it is not, never for hidden although it is shown.
    """

    def __init__(self) -> None:
        self._opened = 0
        self._closed = 0
        self._has_skipped = False

    def note(self, content: Any) -> bool:
        """Note what a page says of its view; return whether the view shows an old state."""
        kind = content.get("view") if isinstance(content, dict) else None
        if kind == "closed":
            self._closed += 1
        if kind != "opened":
            return False
        self._opened += 1
        return self.is_behind()

    def may_skip(self) -> bool:
        """Return whether there were views and all are closed; then an update is skipped."""
        is_hidden = 0 < self._opened <= self._closed
        self._has_skipped |= is_hidden
        return is_hidden

    def is_behind(self) -> bool:
        """Return whether updates were skipped since the last call."""
        found, self._has_skipped = self._has_skipped, False
        return found
