"""Write a file whole or not at all, and never over what it must not replace.

Everything that this project writes where a user says so goes through `replacing` or `write_file`:
options of commands, and functions of Python like ``kernel.save(path)``. Each writes a new file
beside the place and renames it, so that a full disk or a crash leaves the old file as it was.

Never replaced are what is no regular file (a folder, a device, a pipe), a database of SQLite or one
of its side files, a file that may not be written, and the file that the data is read from. A
regular file is replaced by functions of Python, which a notebook calls again and again; commands of
the shell ask for ``--overwrite``.
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
"""How a database of SQLite begins."""

_SIDE_FILES = ("-wal", "-shm", "-journal")
_BEGIN = 40  # characters of a file's name that the name of its new version begins with
_ASK = "choose another file, or say --overwrite"


@dataclass(frozen=True)
class Rules:
    """What `replacing` may replace, and how it refuses."""

    overwrite: bool = True
    """Whether a regular file that is there may be replaced."""
    sources: tuple[str | os.PathLike[str], ...] = ()
    """Files that the data comes from: never replaced, by whatever name."""
    error: type[UserError] = UserError
    """What is raised."""


REPLACES = Rules()
"""The rules of functions of Python: a regular file is replaced."""


def write_file(path: str | os.PathLike[str], data: str | bytes, rules: Rules = REPLACES) -> None:
    """Write a file whole or not at all; a text is written as UTF-8.

    Raises
    ------
    UserError
        It cannot be written, or would replace what must not be replaced.
    """
    with replacing(path, rules) as new:
        new.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], rules: Rules = REPLACES) -> Iterator[Path]:
    """Give the path of a new, empty file; put it in the place of `path` at the end.

    Parameters
    ----------
    path
        The place. Where it is a link, the file that it leads to is replaced.
    rules
        What may be replaced.

    Raises
    ------
    UserError
        It cannot be written, or would replace what must not be replaced.
    """
    place = check_output(path, rules)
    with _telling(path, rules):
        new = place.with_name(f".{place.name[:_BEGIN]}-{uuid.uuid4().hex[:12]}")
        _create(new, place)
        try:
            yield new
            _synchronise(new)
            check_output(path, rules)  # what came there since
            _put(new, place, path, rules)
        finally:
            new.unlink(missing_ok=True)


def check_output(path: str | os.PathLike[str], rules: Rules = REPLACES) -> Path:
    """Return the file that writing `path` would make or replace; refuse what must stay.

    A command calls it before long work, too.

    Raises
    ------
    UserError
        It cannot be written, or would replace what must not be replaced.
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
    """Add lines to the end of a file, which is made if there is none.

    A last line that was never finished is ended first. If the disk is full, the file is as before.

    Raises
    ------
    UserError
        It cannot be written, or is not such that lines may be added.
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
    """Return a folder, made with those above it if it is not there.

    Raises
    ------
    UserError
        It cannot be made.
    """
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"make the folder {path}", "cannot be made", got=_reason(error)) from error
    return Path(path)


def is_sqlite(path: Path) -> bool:
    """Tell whether a regular file is a database of SQLite."""
    with path.open("rb") as stream:
        return stream.read(len(SQLITE)) == SQLITE


def _refuse_kept(place: Path, path: str | os.PathLike[str], rules: Rules) -> None:
    """Refuse to replace what is there."""
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
    """Refuse the names that SQLite uses beside a database: it would read them as its own."""
    for suffix in _SIDE_FILES:
        database = place.with_name(place.name.removesuffix(suffix) or place.name)
        if place.name.endswith(suffix) and database.is_file() and is_sqlite(database):
            raise rules.error(
                f"write {path}", "the name belongs to a database of SQLite", got=str(database),
                hint="choose another file",
            )  # fmt: skip


def _is_same(place: Path, source: str | os.PathLike[str]) -> bool:
    """Tell whether two names are of one file: by links, too, and where there is none yet."""
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
    """Make an empty file with the permissions of the one that it replaces, or a new one's."""
    mode = stat.S_IMODE(place.stat().st_mode) & 0o777 if place.exists() else None
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    os.close(os.open(new, flags, 0o666 if mode is None else mode))
    if mode is not None:
        new.chmod(mode)


def _synchronise(new: Path) -> None:
    """Put the data on the disk before its name: some file systems tell only now that it is full."""
    handle = os.open(new, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _put(new: Path, place: Path, path: str | os.PathLike[str], rules: Rules) -> None:
    """Give a new file its name; without leave to replace, not even what came a moment ago."""
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
    """Raise what the system says as an error of the user's."""
    try:
        yield
    except (OSError, UnicodeEncodeError) as error:
        raise rules.error(f"write {path}", "cannot be written", got=_reason(error)) from error


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
