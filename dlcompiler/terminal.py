r"""Text from elsewhere on a terminal: control characters are shown, never obeyed.

A name from a file, a model or a device may hold characters that move the cursor, rename the window
or reverse the order of reading. `show` is how the command line prints, and `escaped` is how an
error or a table takes in such a text.
"""

from __future__ import annotations

import re
import sys
from typing import TextIO

# C0 and C1 controls and DEL; marks and overrides of the reading order (Unicode TR 36, 3.6); the
# line and paragraph separators; halves of surrogate pairs, which no stream can encode.
_CONTROLS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def escaped(text: str, keep: str = "") -> str:
    r"""Return a text with its control characters as escapes of Python.

    Parameters
    ----------
    text : str
        What may hold them.
    keep : str
        Control characters that stay as they are.

    Examples
    --------
    >>> print(escaped("tile\x1b[2J\n"))
    tile\x1b[2J\n
    >>> escaped("two\nlines", keep="\n")
    'two\nlines'
    """

    def escape(match: re.Match[str]) -> str:
        found = match.group()
        return found if found in keep else found.encode("unicode_escape").decode("ascii")

    return _CONTROLS.sub(escape, text)


def show(*lines: str, file: TextIO | None = None) -> None:
    """Print lines, with the control characters in them escaped, and flush.

    Parameters
    ----------
    *lines : str
        A line each; a line end inside of one is escaped, so that no text can pass for a line of
        its own.
    file : stream, optional
        Standard output by default.
    """
    stream = sys.stdout if file is None else file
    print("\n".join(map(escaped, lines)), file=stream, flush=True)
