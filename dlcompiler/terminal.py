r"""Safe printing of untrusted text on a terminal: control characters are escaped.

A name from a file, a model or a device may contain characters that move the cursor, rename the
window or reverse the reading order. The command line prints by `show`; errors and tables use
`escaped`.
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
    r"""Return a text with its control characters replaced by Python escapes.

    Parameters
    ----------
    text : str
        The text.
    keep : str
        Control characters that are kept.

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
    """Print lines with their control characters escaped, and flush.

    Parameters
    ----------
    *lines : str
        One text for each line. A line end inside a text is escaped, so that it cannot imitate
        a line of the output.
    file : stream, optional
        Standard output by default.
    """
    stream = sys.stdout if file is None else file
    print("\n".join(map(escaped, lines)), file=stream, flush=True)
