"""Generated code as data: its texts, and the interface to call it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from dlcompiler.errors import UserError
from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.launches import Launches
from dlcompiler.runtime.symbols import Check, Variable

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Text:
    """One of the texts of a program."""

    text: str
    lines: tuple[int, ...] = ()
    """For each line of `text`, the line of the printed loop IR that it implements; 0 for none."""


class Texts(Mapping[str, Text]):
    """Texts by name, some of which are generated when they are first read.

    Parameters
    ----------
    ready : mapping
        The texts that there are, by name.
    makers : mapping
        By name of each other text, a function that generates it.
    """

    def __init__(self, ready: Mapping[str, Text], makers: Mapping[str, Callable[[], Text]]) -> None:
        self._ready = dict(ready)
        self._makers = {name: maker for name, maker in makers.items() if name not in ready}

    def __getitem__(self, name: str) -> Text:
        if name not in self._ready:
            self._ready[name] = self._makers[name]()
        return self._ready[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._ready, *self._makers)))

    def __len__(self) -> int:
        return len(self._ready.keys() | self._makers.keys())


@dataclass(frozen=True, slots=True)
class Interface:
    """How generated code is called."""

    symbol: str
    """Name of the function: it takes one pointer per array, in order, then the numbers."""
    params: tuple[Param, ...] = ()
    """What a call takes: arrays and numbers."""
    variables: tuple[Variable, ...] = ()
    """The numbers that the code takes after the arrays."""
    checks: tuple[Check, ...] = ()
    """What must hold of them."""
    messages: tuple[str, ...] = ()
    """Error texts for failed assertions and missing memory, by their number from 1. If there are
    any, LLVM code takes one more pointer: to 9 numbers of 8 bytes, of which the first is 0 before
    the call and receives that of the message; the others receive the numbers that go into the
    message (`errors.filled`). C code returns the number of the message."""
    uses_threads: bool = False
    """Whether it launches parallel loops."""
    reports_values: bool = False
    """Whether C code takes one more pointer, to the numbers in the message."""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values, to be sent to another process."""
        return asdict(self)

    @staticmethod
    def from_json(fields: Mapping[str, Any]) -> Interface:
        """Read what `to_json` wrote."""
        params = (Param(**{**item, "shape": tuple(item["shape"])}) for item in fields["params"])
        return Interface(
            fields["symbol"],
            tuple(params),
            tuple(Variable(**item) for item in fields["variables"]),
            tuple(Check(**item) for item in fields["checks"]),
            tuple(fields["messages"]),
            fields["uses_threads"],
            fields["reports_values"],
        )


@dataclass(frozen=True)
class Source:
    """Generated code, ready for a device to load."""

    language: str
    """``"llvm"``, ``"c"``, ``"loops"``, …: see `Target.language`."""
    texts: Mapping[str, Text]
    """The texts by name, the one to load first: ``"llvm"``; ``"c"`` and ``"header"``; …"""
    interface: Interface
    """How it is called."""
    program: object = field(default=None, compare=False, repr=False)
    """What the code was generated from, for devices that run the loop IR; not sent to workers."""

    launches: Launches | None = None
    """How the host runs the kernels; None for code that is one function."""
    parts: tuple[Any, ...] = field(default=(), compare=False, repr=False)
    """For an accelerator, the instructions of each launch, or None where the host computes it."""

    @property
    def symbol(self) -> str:
        """Name of the function to call."""
        return self.interface.symbol

    @property
    def messages(self) -> tuple[str, ...]:
        """Texts of the errors of the code: see `Interface.messages`."""
        return self.interface.messages

    @property
    def uses_threads(self) -> bool:
        """Whether it launches parallel loops."""
        return self.interface.uses_threads

    @property
    def text(self) -> str:
        """The text that a device loads."""
        return next(iter(self.texts.values())).text

    @property
    def lines(self) -> tuple[int, ...]:
        """For each line of `text`, the line of the printed loop IR."""
        return next(iter(self.texts.values())).lines

    def named(self, name: str | None = None) -> str:
        """Return a text by its name; without one, the text that a device loads.

        Raises
        ------
        UserError
            There is no such text.
        """
        return chosen(self.texts, name, self.interface.symbol).text


def chosen(texts: Mapping[str, T], name: str | None, program: str) -> T:
    """Return one of several texts by its name; the first without one.

    Raises
    ------
    UserError
        There is no such text; `program` is named in the message.
    """
    wanted = next(iter(texts)) if name is None else name
    if wanted not in list(texts):  # which takes a name that cannot be hashed
        raise UserError(
            f"source of {program}", "no text has this name",
            got=repr(name), expected=", ".join(map(repr, texts)),
        )  # fmt: skip
    return texts[wanted]
