"""Tables of named values that are imported at first use."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Generic, TypeVar

from dlcompiler.errors import UserError

T = TypeVar("T")
_CHANGES: list[str] = []


def changes() -> int:
    """Return how often an entry of any registry was set or deleted in this process; [1]."""
    return len(_CHANGES)


class Registry(MutableMapping[str, T], Generic[T]):
    """A mapping from names to values that imports a value when it is first read.

    Parameters
    ----------
    noun : str
        The word for an entry in error messages: ``"target"``.
    entries : mapping
        Name -> the value, or its place as text: ``"package.module:attribute"``.
    attributes : tuple of str
        Attributes that a value must have; `find` refuses one that lacks any.

    Notes
    -----
    Assigning adds an entry, so that a program can extend a family without editing the package.
    Modules are imported only when a value is read, which keeps ``import dlcompiler`` fast.

    Examples
    --------
    >>> waves = Registry("wave", {"sine": "math:sin"})
    >>> waves["sine"](0.0)
    0.0
    >>> waves["flat"] = lambda x: 0.0
    >>> list(waves)
    ['sine', 'flat']
    >>> waves.find("sin", "draw a wave")
    Traceback (most recent call last):
    ...
    dlcompiler.errors.UserError: draw a wave: no wave has this name
      got       'sin'
      expected  'sine', 'flat'
      hint      did you mean 'sine'?
    """

    def __init__(
        self, noun: str, entries: Mapping[str, T | str], attributes: tuple[str, ...] = ()
    ) -> None:
        self.noun = noun
        """What one entry is."""
        self.attributes = attributes
        """Attributes that a value must have."""
        self._entries: dict[str, T | str] = dict(entries)

    def __getitem__(self, name: str) -> T:
        entry = self._entries[name]
        if isinstance(entry, str):
            # The text stays in the table, so that a change of the module by a test is seen; Python
            # itself caches imported modules.
            module, _, attribute = entry.partition(":")
            value: T = getattr(importlib.import_module(module), attribute)
            return value
        return entry

    def __setitem__(self, name: str, entry: T | str) -> None:
        self._entries[name] = entry
        _CHANGES.append(name)

    def __delitem__(self, name: str) -> None:
        del self._entries[name]
        _CHANGES.append(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        # Without importing it; a name that is no text may have no hash.
        return isinstance(name, str) and name in self._entries

    def places(self) -> dict[str, str]:
        """Return the entries that are given as text, with their places."""
        return {name: entry for name, entry in self._entries.items() if isinstance(entry, str)}

    def find(self, name: object, operation: str, *, error: type[UserError] = UserError) -> T:
        """Return the value of a name.

        Parameters
        ----------
        name : object
            The name that the user gives.
        operation : str
            The user's operation, with which the message begins.
        error : type
            The class of the error.

        Raises
        ------
        UserError
            If no entry has this name: the message lists all names, and the closest one. If its
            value cannot be imported, or lacks an attribute.
        """
        if isinstance(name, str) and name in self._entries:
            found = self._imported(name, operation, error)
            if missing := [item for item in self.attributes if not hasattr(found, item)]:
                raise error(
                    operation,
                    f"the {self.noun} {name!r} lacks {', '.join(missing)}",
                    got=repr(found),
                    expected=f"an object with {', '.join(self.attributes)}",
                )
            return found
        close = difflib.get_close_matches(str(name), self._entries, n=1)
        raise error(
            operation,
            f"no {self.noun} has this name",
            got=repr(name),
            expected=", ".join(map(repr, self._entries)),
            hint=f"did you mean {close[0]!r}?" if close else None,
        )

    def _imported(self, name: str, operation: str, error: type[UserError]) -> T:
        """Return the value of an entry; any failure of its import becomes an `error`."""
        try:
            return self[name]
        except Exception as reason:  # an import runs the module, which may raise anything
            raise error(
                operation,
                f"the {self.noun} {name!r} cannot be imported",
                got=repr(self._entries.get(name)),
                expected="a value, or its place as text: 'package.module:attribute'",
                because=f"{type(reason).__name__}: {reason}",
            ) from reason
