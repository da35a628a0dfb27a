"""Temporary folders of one process; after a crash, other processes remove them.

A process that is killed removes nothing. Each folder is therefore locked (``flock``) by the process
that made it, and the system releases the lock when that process ends, however it ends. A folder of
this user that no process locks is abandoned: `sweep` removes it, and ``dlcompiler doctor`` reports
it. Process ids would not be enough: the system reuses them, and each container has its own
numbering.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

if sys.platform != "win32":
    import fcntl

PREFIX = "dlcompiler-private-"
"""Prefix of the folders' names; no other file of this project begins with it."""
MEMORY_FOLDER = Path("/dev/shm")
"""Folder whose files are kept in memory."""
_made: dict[Path, int] = {}
"""Folders of this process that may exist, with the process id."""


@contextlib.contextmanager
def private_folder(base: str | Path | None = None) -> Iterator[Path]:
    """Make a folder that only this user may use, and remove it at the end.

    Parameters
    ----------
    base
        The parent folder; by default, the system's folder for temporary files.

    Raises
    ------
    OSError
        The folder cannot be created.

    Notes
    -----
    The first call of a process removes abandoned folders.
    """
    _sweep_once()
    if sys.platform == "win32":
        with tempfile.TemporaryDirectory(
            prefix=PREFIX, dir=base, ignore_cleanup_errors=True
        ) as made:
            yield Path(made)
        return
    lock, folder = None, Path()
    while lock is None:
        folder = Path(base or tempfile.gettempdir()) / f"{PREFIX}{secrets.token_hex(8)}"
        _made[folder] = os.getpid()
        folder.mkdir(mode=0o700)
        lock = _locked(folder)
    try:
        yield folder
    finally:
        try:
            _remove(folder)
            del _made[folder]
        finally:
            os.close(lock)


def _remove(folder: Path) -> None:
    """Remove a folder, as far as that is possible.

    If a signal interrupts `shutil.rmtree` where it closes a file, it closes the file again. The
    error of this would take the place of the interrupt.
    """
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise error.__context__ from None


@atexit.register
def _remove_rest() -> None:
    """Remove folders that `private_folder` left behind after a signal, or in a daemon thread."""
    for folder, owner in list(_made.items()):
        if owner == os.getpid():  # a forked child has the same list, but not the folders
            _remove(folder)


def abandoned() -> list[Path]:
    """Return the folders of this user whose processes have ended without removing them."""
    found = []
    for folder in _own_folders():
        with _taken(folder) as is_taken:
            if is_taken:
                found.append(folder)
    return found


def sweep() -> list[Path]:
    """Remove abandoned folders; return those that were removed."""
    removed = []
    for folder in _own_folders():
        with _taken(folder) as is_taken:
            if is_taken:
                _remove(folder)
                removed += [] if folder.exists() else [folder]
    return removed


@functools.cache
def _sweep_once() -> None:
    sweep()


def size_bytes(folder: Path) -> int:
    """Return the total size of the files in a folder [byte]."""
    total = 0
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            with contextlib.suppress(OSError):
                total += path.lstat().st_size
    return total


def _locked(folder: Path) -> int | None:
    """Lock a new folder; None if another process found it unlocked, and removed it."""
    handle = _open(folder)
    if handle is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
    except OSError:
        return handle  # without locks, no other process can take it for abandoned either
    with contextlib.suppress(OSError):
        if os.path.samestat(os.fstat(handle), folder.lstat()):
            return handle
    os.close(handle)
    return None


@contextlib.contextmanager
def _taken(folder: Path) -> Iterator[bool]:
    """Lock a folder for the time of a ``with`` block, if no process holds it."""
    handle = _open(folder)
    if handle is None:
        yield False
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(handle)


def _open(folder: Path) -> int | None:
    """Open a folder to lock it; None if it is gone, a link, or not this user's."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    if os.fstat(handle).st_uid == os.getuid():
        return handle
    os.close(handle)
    return None


def _own_folders() -> Iterator[Path]:
    """Yield folders whose names have the prefix; their owner is checked when they are opened."""
    if sys.platform == "win32":
        return
    for base in dict.fromkeys((MEMORY_FOLDER, Path(tempfile.gettempdir()))):
        try:
            names = sorted(name for name in os.listdir(base) if name.startswith(PREFIX))
        except OSError:
            continue
        for name in names:
            with contextlib.suppress(OSError):
                facts = (base / name).lstat()
                if stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid():
                    yield base / name
