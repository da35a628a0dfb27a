"""Notes: warnings that a request of classic code is done in another way here."""

from __future__ import annotations

import warnings

from dlcompiler.terminal import escaped


class CompatNote(UserWarning):
    """A request is done in another way than in TVM; the result is the same."""


def note(text: str, stacklevel: int = 3) -> None:
    """Show a note to the user, at the line of the caller's caller.

    Parameters
    ----------
    text : str
        The request, and what is done instead.
    stacklevel : int
        As in `warnings.warn`.
    """
    warnings.warn(escaped(text, keep="\n"), CompatNote, stacklevel=stacklevel)
