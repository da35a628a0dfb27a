"""Reading of untrusted files: only regular files are read, and each is opened only once.

Opening a named pipe would wait for a writer, and opening a device may change its state. A path may
name another file a moment after it was checked, so the checks here use the opened file.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

LARGEST_BYTES = 1 << 30
"""Largest file that is read as a whole [byte]."""


def open_regular(path: str | Path, *, follow_links: bool = True) -> BinaryIO:
    """Open a regular file for reading, and refuse any other.

    Parameters
    ----------
    path : path
        The file.
    follow_links : bool
        Whether `path` may be a symbolic link.

    Raises
    ------
    OSError
        If it cannot be read, or is a folder, a pipe, a socket or a device.
    """
    _refuse_irregular(os.stat(path, follow_symlinks=follow_links), path)
    # The path may name another file by now. `O_NONBLOCK` prevents waiting for the writer of a pipe;
    # it has no effect on regular files.
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
        Largest size that is read [byte].
    follow_links : bool
        Whether `path` may be a symbolic link.
    check : callable, optional
        Called with the status of the opened file (`os.stat_result`) before it is read; it raises an
        error to refuse the file.

    Raises
    ------
    OSError
        If it cannot be read, is not a regular file, or is too large.
    """
    with open_regular(path, follow_links=follow_links) as file:
        status = os.fstat(file.fileno())
        if check is not None:
            check(status)
        # Nothing is read of a file that is too large already; it may still grow.
        data = file.read(largest + 1) if status.st_size <= largest else b""
    if max(status.st_size, len(data)) > largest:
        raise OSError(errno.EFBIG, f"longer than {largest} bytes", str(path))
    return data


def lines(stream: BinaryIO, longest: int) -> Iterator[tuple[int, bytes | None]]:
    """Yield the lines of a file with their numbers, from 1; None for one that is longer.

    Parameters
    ----------
    stream : stream
        Where they are read from.
    longest : int
        Longest line that is returned; more of a line is not kept in memory [byte].
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
