"""What every code generator returns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """Generated code, ready for the runtime."""

    text: str
    language: str
    """The language of `text`: ``"llvm"`` or ``"c"``."""
    symbol: str
    """Name of the function to call: it takes one pointer per array, in order, then the numbers."""
    uses_threads: bool
    """Whether it launches parallel loops."""
    lines: tuple[int, ...]
    """For each line of `text`, the line of the printed loop IR that it carries out; 0 for none."""
    messages: tuple[str, ...] = ()
    """What to say when an assertion fails or memory is short, by its number from 1. If there are
    any, an LLVM function takes one more pointer: to 8 bytes, 0 before the call, that receive the
    number of the first. One of C returns it."""
    header: str = ""
    """Of C: what a caller includes; `text` begins with it."""
