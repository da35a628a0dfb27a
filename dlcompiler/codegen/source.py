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
    any, an LLVM function takes one more pointer: to 9 numbers of 8 bytes, of which the first is 0
    before the call and receives that of the message; the others receive the numbers that go into
    the message (`errors.filled`). A function of C returns the number of the message."""
    header: str = ""
    """Of C: what a caller includes; `text` begins with it."""
    reports_values: bool = False
    """Of C: whether it takes one more pointer, to the numbers in the message."""
