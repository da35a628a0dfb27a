"""Files that somebody else wrote: only regular ones are opened, and each is opened once.

Opening a named pipe waits for a writer, opening a device can act on it, and a path can name another
file a moment after it was looked at. What is checked here is the file that was opened.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

LARGEST_BYTES = 1 << 30
"""Longest file that is read as a whole [byte]."""


def open_regular(path: str | Path, *, follow_links: bool = True) -> BinaryIO:
    """Open a file for reading; nothing but a regular file is ever opened.

    Parameters
    ----------
    path : path
        The file.
    follow_links : bool
        Whether `path` may be a symbolic link.

    Raises
    ------
    OSError
        It cannot be read, or is a folder, a pipe, a socket or a device.
    """
    _refuse_irregular(os.stat(path, follow_symlinks=follow_links), path)
    # It may be another file by now: `O_NONBLOCK` keeps a pipe from waiting, and has no effect on
    # regular files.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if not follow_links:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags)
    try:
        _refuse_irregular(os.fstat(descriptor), path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(
    path: str | Path,
    largest: int = LARGEST_BYTES,
    *,
    follow_links: bool = True,
    check: Callable[[os.stat_result], None] | None = None,
) -> bytes:
    """Return the bytes of a regular file.

    Parameters
    ----------
    path : path
        The file.
    largest : int
        A longer one is not read [byte].
    follow_links : bool
        Whether `path` may be a symbolic link.
    check : callable, optional
        Called with what the system knows of the file that was opened, before it is read; it raises
        to refuse it.

    Raises
    ------
    OSError
        It cannot be read, is no regular file, or is too long.
    """
    with open_regular(path, follow_links=follow_links) as file:
        if check is not None:
            check(os.fstat(file.fileno()))
        data = file.read(largest + 1)
    if len(data) > largest:
        raise OSError(errno.EFBIG, f"longer than {largest} bytes", str(path))
    return data


def lines(stream: BinaryIO, longest: int) -> Iterator[tuple[int, bytes | None]]:
    """Yield the lines of a file with their numbers, from 1; None for one that is longer.

    Parameters
    ----------
    stream : stream
        Where they are read from.
    longest : int
        Of a longer line no more is kept in memory [byte].
    """
    number = 0
    while line := stream.readline(longest + 1):
        number += 1
        is_long = len(line) > longest
        while is_long and not line.endswith(b"\n"):
            line = stream.readline(longest)
            if not line:
                break
        yield number, None if is_long else line


def _refuse_irregular(facts: os.stat_result, path: str | Path) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
