"""Writing of files to paths that a user gives: complete or not at all, and only where allowed.

All such files are written by `replacing` or `write_file`, from options of commands and functions
such as ``kernel.save(path)``. A new file is written beside the path and then renamed, so that the
old file is unchanged after a full disk or a crash.

Some files are never replaced: those that are not regular (folders, devices, pipes), SQLite
databases and their side files, files without write permission, and the file from which the data is
read. Other regular files are replaced by Python functions, which a notebook calls repeatedly;
commands of the shell require ``--overwrite``.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dlcompiler.errors import UserError

SQLITE = b"SQLite format 3\0"
"""First bytes of an SQLite database."""

_SIDE_FILES = ("-wal", "-shm", "-journal")
_BEGIN = 40  # characters of a file's name that the name of its new version begins with
_ASK = "choose another file, or say --overwrite"


@dataclass(frozen=True)
class Rules:
    """Rules of `replacing`: which files it may replace, and which error it raises."""

    overwrite: bool = True
    """Whether an existing regular file may be replaced."""
    sources: tuple[str | os.PathLike[str], ...] = ()
    """Files from which the data is read: they are never replaced, under any name."""
    error: type[UserError] = UserError
    """Class of the errors."""


REPLACES = Rules()
"""Rules of Python functions: an existing regular file is replaced."""


def write_file(path: str | os.PathLike[str], data: str | bytes, rules: Rules = REPLACES) -> None:
    """Write a file completely or not at all; a text is written as UTF-8.

    Raises
    ------
    UserError
        If it cannot be written, or would replace a file that must not be replaced.
    """
    with replacing(path, rules) as new:
        new.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], rules: Rules = REPLACES) -> Iterator[Path]:
    """Give the path of a new, empty file, and rename it to `path` at the end of the context.

    Parameters
    ----------
    path
        The path to write. If it is a link, its target is replaced.
    rules
        Which files may be replaced.

    Raises
    ------
    UserError
        If it cannot be written, or would replace a file that must not be replaced.
    """
    place = check_output(path, rules)
    with _telling(path, rules):
        new = place.with_name(f".{place.name[:_BEGIN]}-{uuid.uuid4().hex[:12]}")
        _create(new, place)
        try:
            yield new
            _synchronise(new)
            check_output(path, rules)  # a file may have been created there since
            _put(new, place, path, rules)
        finally:
            new.unlink(missing_ok=True)


def check_output(path: str | os.PathLike[str], rules: Rules = REPLACES) -> Path:
    """Return the file that writing to `path` would create or replace; refuse one that must stay.

    A command also calls it before long work, to fail early.

    Raises
    ------
    UserError
        If it cannot be written, or would replace a file that must not be replaced.
    """
    if "\0" in str(path):
        raise rules.error(f"write {str(path)!r}", "no name of a file", got="a null character")
    with _telling(path, rules):
        place = Path(os.path.realpath(path))
        for source in rules.sources:
            if _is_same(place, source):
                raise rules.error(
                    f"write {path}", "the data is read from this file", got=str(source),
                    hint="choose another file",
                )  # fmt: skip
        if not place.parent.is_dir():
            raise rules.error(f"write {path}", "no such folder", got=str(place.parent))
        _refuse_side_file(place, path, rules)
        if os.path.lexists(place):
            _refuse_kept(place, path, rules)
        return place


def append_lines(
    path: str | os.PathLike[str], lines: Sequence[str], rules: Rules = REPLACES
) -> None:
    """Append lines to a file, which is created if it does not exist.

    If the last line has no line end, one is added first. If the disk is full, the file does not
    change.

    Raises
    ------
    UserError
        If the file cannot be written, or its rules forbid it.
    """
    place = check_output(path, rules)
    is_new = not place.exists()
    with _telling(path, rules), place.open("a+b", buffering=0) as stream:
        before = stream.seek(0, os.SEEK_END)
        if before:
            stream.seek(before - 1)
        begin = b"\n" if before and stream.read(1) != b"\n" else b""
        text = begin + "".join(f"{line}\n" for line in lines).encode("utf-8")
        try:
            _write_all(stream, text)
        except OSError:
            stream.truncate(before)
            if is_new:
                place.unlink()
            raise


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Create a folder and those above it, if they do not exist, and return its path.

    Raises
    ------
    UserError
        If it cannot be created.
    """
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"make the folder {path}", "cannot be made", got=_reason(error)) from error
    return Path(path)


def is_sqlite(path: Path) -> bool:
    """Tell whether a regular file is an SQLite database."""
    with path.open("rb") as stream:
        return stream.read(len(SQLITE)) == SQLITE


def _refuse_kept(place: Path, path: str | os.PathLike[str], rules: Rules) -> None:
    """Refuse to replace an existing file that must be kept."""
    found = place.stat()
    if not stat.S_ISREG(found.st_mode):
        raise rules.error(
            f"write {path}", f"{_kind(found.st_mode)} is there, which is never replaced",
            hint="choose another file",
        )  # fmt: skip
    if is_sqlite(place):
        raise rules.error(
            f"write {path}", "a database of SQLite is there, which is never replaced",
            hint="choose another file",
        )  # fmt: skip
    if not os.access(place, os.W_OK):
        raise rules.error(f"write {path}", "the file that is there may not be written")
    if not rules.overwrite:
        raise rules.error(f"write {path}", "the file is there already", hint=_ASK)


def _refuse_side_file(place: Path, path: str | os.PathLike[str], rules: Rules) -> None:
    """Refuse the names of side files of an SQLite database, which SQLite would read as its own."""
    for suffix in _SIDE_FILES:
        database = place.with_name(place.name.removesuffix(suffix) or place.name)
        if place.name.endswith(suffix) and database.is_file() and is_sqlite(database):
            raise rules.error(
                f"write {path}", "the name belongs to a database of SQLite", got=str(database),
                hint="choose another file",
            )  # fmt: skip


def _is_same(place: Path, source: str | os.PathLike[str]) -> bool:
    """Tell whether two paths name one file, also by links, or if it does not exist yet."""
    with contextlib.suppress(OSError):
        return os.path.samefile(place, source)
    return place == Path(os.path.realpath(source))


_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)


def _kind(mode: int) -> str:
    return next((name for is_kind, name in _KINDS if is_kind(mode)), "no regular file")


def _create(new: Path, place: Path) -> None:
    """Create an empty file, with the permissions of the file that it replaces if there is one."""
    mode = stat.S_IMODE(place.stat().st_mode) & 0o777 if place.exists() else None
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    os.close(os.open(new, flags, 0o666 if mode is None else mode))
    if mode is not None:
        new.chmod(mode)


def _synchronise(new: Path) -> None:
    """Write the data to the disk before renaming: only now do some systems report a full disk."""
    handle = os.open(new, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _put(new: Path, place: Path, path: str | os.PathLike[str], rules: Rules) -> None:
    """Rename the new file; unless it may overwrite, not over a file that was created meanwhile."""
    if rules.overwrite:
        new.replace(place)
        return
    try:
        os.link(new, place)
    except FileExistsError:
        raise rules.error(f"write {path}", "the file is there already", hint=_ASK) from None
    except OSError:  # a file system without links
        new.rename(place)


def _write_all(stream: io.FileIO, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[stream.write(rest) :]


@contextlib.contextmanager
def _telling(path: str | os.PathLike[str], rules: Rules) -> Iterator[None]:
    """Turn errors of the system into the error class of the rules."""
    try:
        yield
    except (OSError, UnicodeEncodeError) as error:
        raise rules.error(f"write {path}", "cannot be written", got=_reason(error)) from error


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
