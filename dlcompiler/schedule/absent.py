"""Errors for unknown attributes of stages and schedules: ``there is no …, did you mean …?``."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, NoReturn

from dlcompiler.errors import ScheduleError


class AbsentPrimitive(ScheduleError, AttributeError):  # noqa: N818 - a state of this project
    """Error for an unknown primitive; it is also an AttributeError, so that ``hasattr`` works."""


class Handle:
    """Base of stages and schedules: an unknown attribute raises `AbsentPrimitive`."""

    __slots__ = ()
    name: str

    if not TYPE_CHECKING:  # hidden so that a type checker still reports unknown attributes

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_") or name == "name":
                raise AttributeError(name)
            refuse_absent(f"{type(self).__name__.lower()} {self.name}", name, dir(type(self)))


def refuse_absent(owner: str, name: str, known: list[str]) -> NoReturn:
    """Raise the error for a primitive that an object does not have.

    Parameters
    ----------
    owner : str
        The object, in words: ``"stage C"``.
    name : str
        The primitive.
    known : list of str
        The names that the object has.

    Raises
    ------
    AbsentPrimitive
        Always.
    """
    public = [word for word in known if not word.startswith("_")]
    close = difflib.get_close_matches(name, public, n=1)
    raise AbsentPrimitive(
        f"{name} of {owner}", f"there is no {name}",
        hint=f"did you mean {close[0]}?" if close else None,
    )  # fmt: skip
