"""Cache compiled machine code on disk, so that later processes only link it.

The name of an entry is a hash of everything that decides its bytes, so that no entry can be out of
date. An entry holds its name and a hash of its content. Both are checked before it is linked: a
damaged object could end the process, and a renamed one would compute something else.
Only this user may write the folder. If the cache cannot be used, one warning says so, and code is
compiled each time.

``DLCOMPILER_OBJECT_CACHE`` names another folder, or switches it ``off``.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import stat
import threading
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dlcompiler.input_files import read_regular
from dlcompiler.json_text import JsonError, parse
from dlcompiler.runtime.trust import is_foreign, is_open
from dlcompiler.terminal import escaped

VARIABLE = "DLCOMPILER_OBJECT_CACHE"
"""Name of the environment variable: a folder, or ``off``."""
OFF = "off"
LIMIT_BYTES = 256 << 20
"""Largest size of the default cache [byte]."""

_MAGIC = b"dlcompiler object 2\n"
_SUFFIX = ".object"
_ABANDONED_S = 3600.0
_LARGEST_TEXT_BYTES = 64 << 10


class ObjectCacheWarning(UserWarning):
    """The object cache cannot be used; code is compiled each time."""


@dataclass(frozen=True, slots=True)
class CompiledObject:
    """A compiled module before it is linked."""

    image: bytes
    """The object file, as LLVM wrote it."""
    symbols: tuple[str, ...]
    """Functions that can be called."""
    imports: tuple[str, ...]
    """Functions outside that it declares, intrinsics among them."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Counters of this process."""

    hits: int = 0
    """Modules whose code was found in a cache."""
    misses: int = 0
    """Modules that were not found in a cache."""
    compiles: int = 0
    """Modules for which LLVM made code, to load it."""
    stores: int = 0
    """Entries written."""
    damaged: int = 0
    """Entries that were damaged, or written by others; they were compiled again."""
    evictions: int = 0
    """Entries removed to keep within the limit."""


class ObjectCache:
    """A folder of compiled objects, shared by all processes of a user.

    Parameters
    ----------
    folder : Path
        Created with the first entry, for this user only.
    limit_bytes : int
        Size of the folder above which the least recently used entries are removed [byte].
        Processes that write at the same time may exceed it until their next check.

    Notes
    -----
    No method raises an error because of the state of the disk.
    """

    def __init__(self, folder: Path, limit_bytes: int = LIMIT_BYTES) -> None:
        self.folder = folder
        self.limit_bytes = limit_bytes
        self._lock = threading.Lock()
        self._room = -1
        """Bytes to write until the size of the folder is checked again."""
        self._has_warned = False

    def load(self, key: str) -> CompiledObject | None:
        """Return the entry of a key, or None."""
        found = None
        try:
            if not self._problem():
                found = self._read(key)
        except FileNotFoundError:
            pass
        except OSError as error:
            self._warn(f"cannot be read: {error}")
        _totals.add("misses" if found is None else "hits")
        return found

    def _read(self, key: str) -> CompiledObject | None:
        path = self._path(key)
        found = _decoded(key, _read_own(path, self.limit_bytes))
        if found is None:
            _totals.add("damaged")
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # mark as used now: removed last
        return found

    def store(self, key: str, made: CompiledObject) -> None:
        """Store an object under a key."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if problem := self._problem():
                self._warn(problem)
                return
            data = _encoded(key, made)
            if len(data) > self.limit_bytes:
                return
            with self._lock:
                self._make_room(len(data))
            _write_whole(self._path(key), data)
        except OSError as error:
            self._warn(f"cannot be written: {error}")
            return
        _totals.add("stores")

    def load_text(self, name: str) -> str | None:
        """Return a short text that `store_text` kept under a name, or None."""
        try:
            if not self._problem():
                return _read_own(self.folder / name, _LARGEST_TEXT_BYTES).decode("utf-8")
        except (OSError, UnicodeDecodeError):
            pass
        return None

    def store_text(self, name: str, text: str) -> None:
        """Keep a short text, such as figures of this machine, beside the objects."""
        with contextlib.suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._problem():
                _write_whole(self.folder / name, text.encode())

    def size(self) -> tuple[int, int]:
        """Return the number of entries and their size [byte]."""
        try:
            sizes = [facts.st_size for _, facts in self._entries()]
        except OSError:
            return 0, 0
        return len(sizes), sum(sizes)

    def _warn(self, problem: str) -> None:
        """Warn once that this cache is not used."""
        if self._has_warned:
            return
        self._has_warned = True
        with contextlib.suppress(ObjectCacheWarning):  # where warnings are errors
            text = escaped(f"the object cache is not used: {problem}")
            warnings.warn(text, ObjectCacheWarning, stacklevel=5)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{_SUFFIX}"

    def problem(self) -> str | None:
        """Return why the folder cannot be used; None if it can, or if it can still be created."""
        try:
            return self._problem()
        except FileNotFoundError:
            return None
        except OSError as error:
            return f"cannot be read: {error}"

    def _problem(self) -> str | None:
        """Return why the folder cannot be trusted."""
        if os.name != "posix":
            return None
        facts = self.folder.stat()
        if is_foreign(facts):
            return f"{self.folder} belongs to another user"
        if is_open(facts):
            return f"others may write {self.folder}: chmod go-w {self.folder}"
        return None

    def _entries(self) -> list[tuple[str, os.stat_result]]:
        """Return the paths of all entries, as texts: a `Path` of each would take long."""
        found = []
        with os.scandir(self.folder) as items:
            for item in items:
                if item.name.endswith(_SUFFIX):
                    with contextlib.suppress(FileNotFoundError):  # another process removed it
                        facts = item.stat(follow_symlinks=False)
                        if stat.S_ISREG(facts.st_mode):
                            found.append((item.path, facts))
        return found

    def _make_room(self, size: int) -> None:
        """Remove the least recently used entries if `size` more bytes would exceed the limit."""
        if size <= self._room:
            self._room -= size
            return
        entries = self._entries()
        self._remove_abandoned()
        total = sum(facts.st_size for _, facts in entries)
        most = self.limit_bytes - size
        if total > most:
            entries.sort(key=lambda entry: entry[1].st_mtime, reverse=True)
        while entries and total > most:
            path, facts = entries.pop()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            total -= facts.st_size
            most = min(most, self.limit_bytes * 3 // 4)  # not again at the next entry
            _totals.add("evictions")
        self._room = max(self.limit_bytes - total - size, 0)

    def _remove_abandoned(self) -> None:
        """Remove files of processes that ended while writing."""
        for path in self.folder.glob(f".*{_SUFFIX}.*"):
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < time.time() - _ABANDONED_S:
                    path.unlink()


def key(parts: Sequence[Any], text: str) -> str:
    """Return the name of an entry: a hash of all that decides its bytes.

    Parameters
    ----------
    parts : sequence
        JSON values: how the text is compiled, and by what.
    text : str
        The LLVM IR that is compiled.
    """
    digest = hashlib.sha256(json.dumps(parts).encode())
    digest.update(b"\0")
    digest.update(text.encode())
    return digest.hexdigest()


# -- files ----------------------------------------------------------------------------------------


def _encoded(key: str, made: CompiledObject) -> bytes:
    head = {"key": key, "symbols": made.symbols, "imports": made.imports}
    body = json.dumps(head).encode() + b"\n" + made.image
    return _MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def _decoded(key: str, data: bytes) -> CompiledObject | None:
    """Read the entry of a key; None if it is damaged."""
    if not data.startswith(_MAGIC):
        return None
    digest, _, body = data[len(_MAGIC) :].partition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() != digest:
        return None
    head, _, image = body.partition(b"\n")
    try:
        fields = parse(head)
        if fields["key"] != key:
            return None
        return CompiledObject(image, tuple(fields["symbols"]), tuple(fields["imports"]))
    except (JsonError, KeyError, TypeError):
        return None


def _read_own(path: Path, largest: int) -> bytes:
    """Return the bytes of a regular file that only this user may write; b"" for other files.

    Raises
    ------
    FileNotFoundError
        No file has this name.
    """
    try:
        return read_regular(path, largest, follow_links=False, check=_refuse_foreign)
    except FileNotFoundError:
        raise
    except OSError:
        return b""


def _refuse_foreign(facts: os.stat_result) -> None:
    if os.name == "posix" and (is_foreign(facts) or is_open(facts)):
        raise PermissionError("others may write it")


def _write_whole(path: Path, data: bytes) -> None:
    """Write a file atomically: other processes see all of it or nothing."""
    new = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        new.unlink(missing_ok=True)  # left by a process with the same id, or a link
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


# -- counts --------------------------------------------------------------------------------------


class _Totals:
    """The counts of this process; threads may add to them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.counts = Counts()

    def add(self, what: str) -> None:
        with self._lock:
            self.counts = replace(self.counts, **{what: getattr(self.counts, what) + 1})


_totals = _Totals()


def counts() -> Counts:
    """Return the counters of this process."""
    return _totals.counts


def count_compile() -> None:
    """Count a module that LLVM compiled to load it."""
    _totals.add("compiles")


# -- the cache of this process --------------------------------------------------------------------

_chosen: list[ObjectCache | None] = []


def current() -> ObjectCache | None:
    """Return the cache that this process uses, or None."""
    if not _chosen:
        _chosen.append(default())
    return _chosen[0]


def use(chosen: ObjectCache | None) -> None:
    """Use another cache, or None for no cache, in this process and workers it will start."""
    _chosen[:] = [chosen]


def default() -> ObjectCache | None:
    """Return the cache that the environment names, or that of the user."""
    named = os.environ.get(VARIABLE, "")
    if named.lower() == OFF:
        return None
    if named:
        return ObjectCache(Path(named).absolute())
    own = importlib.import_module("platformdirs").user_cache_dir("dlcompiler", appauthor=False)
    return ObjectCache(Path(own) / "objects")


def environment() -> dict[str, str]:
    """Return the environment with which a child process uses the same cache."""
    chosen = current()
    return {VARIABLE: OFF if chosen is None else str(chosen.folder)}
