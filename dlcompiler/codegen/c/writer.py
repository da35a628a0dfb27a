"""Collect the lines, blocks and identifiers of a function's body."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dlcompiler.codegen.c.names import Names

INDENT = "    "
COLUMNS = 100
"""Longest line of code; longer ones are continued; [characters]."""
_INDEX = re.compile(r"\[[^\[\]]*\]")
_NO_BREAK = "\0"


class Writer:
    """Collects lines, each with the number of the loop-IR line that it implements.

    Parameters
    ----------
    names
        The identifiers in use; each block of the text is also a scope of these.
    """

    def __init__(self, names: Names) -> None:
        self.names = names
        self.lines: list[tuple[str, int]] = []
        self.source_line = 0
        """The line of the loop IR that the next lines belong to."""
        self._depth = 1

    def line(self, text: str) -> None:
        """Append a line; a long one is broken, but not inside an index."""
        code, mark, comment = text.partition("  /*")
        indent = INDENT * self._depth
        broken = textwrap.wrap(
            _INDEX.sub(lambda index: index[0].replace(" ", _NO_BREAK), code),
            COLUMNS,
            initial_indent=indent,
            subsequent_indent=indent + 2 * INDENT,
            break_long_words=False,
            break_on_hyphens=False,
        )
        broken[-1] += mark + comment
        self.lines.extend((line.replace(_NO_BREAK, " "), self.source_line) for line in broken)

    def directive(self, text: str) -> None:
        """Append a directive of the preprocessor."""
        self.lines.append((text, self.source_line))

    def label(self, text: str) -> None:
        """Append a label, indented less than the statements around it."""
        self.lines.append((INDENT * (self._depth - 1) + text, self.source_line))

    def extend(self, lines: Sequence[tuple[str, int]]) -> None:
        """Append lines that were collected by `aside`."""
        self.lines.extend(lines)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Append ``head {``, the lines written inside the context, and ``}``."""
        self.line(f"{head} {{".strip())
        with self.inside():
            yield
        self.line("}")

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Write the lines of a block whose braces are written by the caller."""
        self._depth += 1
        with self.names.block():
            yield
        self._depth -= 1

    @contextmanager
    def aside(self) -> Iterator[list[tuple[str, int]]]:
        """Collect the lines of a block in a separate list."""
        kept, self.lines = self.lines, []
        try:
            with self.inside():
                yield self.lines
        finally:
            self.lines = kept
