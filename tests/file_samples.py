"""What a reader of files is, for the tests that damage files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dlcompiler.errors import DLCompilerError, UserError


@dataclass(frozen=True)
class Inside:
    """The JSON that a file holds, for damage behind a compression or a digest."""

    text: bytes
    pack: Callable[[bytes], bytes]


@dataclass(frozen=True)
class Sample:
    """A good file."""

    data: bytes
    check: Callable[[bytes, Path], None]
    """Reads the damaged bytes, which are in the file, too; raises what the reader raises, or an
    AssertionError where the reader returned something wrong."""
    inside: Inside | None = None
    suffix: str = ""
    refuses_with: type[DLCompilerError] = UserError


@dataclass(frozen=True)
class Reader:
    """A reader of files."""

    name: str
    modules: tuple[str, ...]
    """Where its code opens and parses files."""
    make: Callable[[Path], Sample | None]
    """Makes the sample in a folder; None: not on this machine."""
