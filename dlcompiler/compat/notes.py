"""Notes: what classic code asked for and is done in another way here, said aloud."""

from __future__ import annotations

import warnings

from dlcompiler.terminal import escaped


class CompatNote(UserWarning):
    """Something was done in another way than asked for; the result is the same."""


def note(text: str, stacklevel: int = 3) -> None:
    """Show a note to the user, at the line of the caller's caller.

    Parameters
    ----------
    text : str
        What was asked for, and what is done.
    stacklevel : int
        As in `warnings.warn`.
    """
    warnings.warn(escaped(text, keep="\n"), CompatNote, stacklevel=stacklevel)
