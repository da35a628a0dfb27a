"""Notes: warnings that dlcompiler fulfils a request of classic code in another way than TVM."""

from __future__ import annotations

import warnings

from dlcompiler.terminal import escaped


class CompatNote(UserWarning):
    """Warning that a request is fulfilled in another way than in TVM, with the same result."""


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
