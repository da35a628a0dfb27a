"""Refuse code files that other users may have written, since loading code runs it."""

from __future__ import annotations

import ctypes
import os
import stat
from pathlib import Path

from dlcompiler.errors import UserError
from dlcompiler.input_files import read_regular
from dlcompiler.runtime.private_folders import private_folder


def read_trusted(path: Path) -> bytes:
    """Return the bytes of a file, unless others may write it.

    The file is opened once, so that the checked file is the one that is read, even if the path is
    replaced a moment later. Code must be loaded from these bytes.

    Raises
    ------
    UserError
        It belongs to another user, its permissions, or its folder's, let others write it, or it is
        no regular file.
    """
    try:
        data = read_regular(path, check=lambda facts: _refuse_untrusted(path, facts))
    except OSError as error:
        raise UserError(f"load {path}", "cannot be read", got=error.strerror) from error
    if os.name == "posix":
        _refuse_open_folder(path)
    return data


def load_shared(code: bytes) -> ctypes.CDLL:
    """Load a shared object from bytes that were checked.

    The system's loader takes a path: it gets a private copy, which is then removed. So no other
    process can change the code between the check and the loading, or later; and truncating the
    original file does not end this process.

    Raises
    ------
    OSError
        It is not a shared object for this system.
    """
    with private_folder() as folder:
        copy = folder / "library.so"
        copy.write_bytes(code)
        return ctypes.CDLL(str(copy))


def _refuse_untrusted(path: Path, facts: os.stat_result) -> None:
    """Refuse a file that others may write."""
    if os.name != "posix":
        return
    if is_foreign(facts):
        raise UserError(
            f"load {path}", "it belongs to another user", because="loading it runs its code",
            hint="copy it, if you trust it",
        )  # fmt: skip
    if is_open(facts):
        raise UserError(
            f"load {path}", "others may write it", because="loading it runs its code",
            got=stat.filemode(facts.st_mode), hint=f"chmod go-w {path}",
        )  # fmt: skip


def is_foreign(facts: os.stat_result) -> bool:
    """Tell whether a file belongs to a user other than this process's or the system's."""
    return facts.st_uid not in (os.getuid(), 0)


def is_open(facts: os.stat_result) -> bool:
    """Tell whether a file's permissions let others write it."""
    return bool(facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _refuse_open_folder(path: Path) -> None:
    """Refuse a file that others may replace. In a sticky folder, such as /tmp, they may not."""
    folder = path.resolve().parent
    facts = folder.stat()
    by_all = facts.st_mode & stat.S_IWOTH
    by_group = facts.st_mode & stat.S_IWGRP and facts.st_gid not in (os.getgid(), 0)
    if is_foreign(facts) or ((by_all or by_group) and not facts.st_mode & stat.S_ISVTX):
        raise UserError(
            f"load {path}", "others may replace it", because="loading it runs its code",
            got=f"{stat.filemode(facts.st_mode)} {folder}", hint=f"chmod go-w {folder}",
        )  # fmt: skip
