"""Which files may be loaded: loading code runs it, so nobody else may have written it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from dlcompiler.errors import UserError


def refuse_untrusted(path: Path) -> None:
    """Refuse a file that others may write, before anything of it runs.

    Raises
    ------
    UserError
        It belongs to another user, or its permissions, or its folder's, let others write it.
    """
    try:
        facts = path.stat()
    except OSError as error:
        raise UserError(f"load {path}", "cannot be read", got=error.strerror) from error
    if not stat.S_ISREG(facts.st_mode):
        raise UserError(f"load {path}", "not a file")
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
    _refuse_open_folder(path)


def is_foreign(facts: os.stat_result) -> bool:
    """Tell whether a file belongs to another user than this process's, or the system's."""
    return facts.st_uid not in (os.getuid(), 0)


def is_open(facts: os.stat_result) -> bool:
    """Tell whether a file's permissions let others write it."""
    return bool(facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _refuse_open_folder(path: Path) -> None:
    """Refuse a file that others may replace: a sticky folder, as /tmp is, lets them not."""
    folder = path.resolve().parent
    facts = folder.stat()
    by_all = facts.st_mode & stat.S_IWOTH
    by_group = facts.st_mode & stat.S_IWGRP and facts.st_gid not in (os.getgid(), 0)
    if is_foreign(facts) or ((by_all or by_group) and not facts.st_mode & stat.S_ISVTX):
        raise UserError(
            f"load {path}", "others may replace it", because="loading it runs its code",
            got=f"{stat.filemode(facts.st_mode)} {folder}", hint=f"chmod go-w {folder}",
        )  # fmt: skip
