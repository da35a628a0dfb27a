"""Generated code as data: texts, and what a caller must know to run them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dlcompiler.errors import UserError
from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.symbols import Check, Variable


@dataclass(frozen=True, slots=True)
class Text:
    """One of the texts of a program."""

    text: str
    lines: tuple[int, ...] = ()
    """For each line of `text`, the line of the printed loop IR that it carries out; 0 for none."""


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
    """What to say when an assertion fails or memory is short, by its number from 1. If there are
    any, LLVM code takes one more pointer: to 8 bytes, 0 before the call, that receive the number
    of the first. C code returns it."""
    uses_threads: bool = False
    """Whether it launches parallel loops."""


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

    @property
    def text(self) -> str:
        """The text that a device loads."""
        return next(iter(self.texts.values())).text

    @property
    def lines(self) -> tuple[int, ...]:
        """The lines of the printed loop IR for those of `text`."""
        return next(iter(self.texts.values())).lines

    def named(self, name: str) -> str:
        """Return a text by its name.

        Raises
        ------
        UserError
            There is no such text.
        """
        if name not in self.texts:
            raise UserError(
                f"source of {self.interface.symbol}", "no text has this name",
                got=repr(name), expected=", ".join(map(repr, self.texts)),
            )  # fmt: skip
        return self.texts[name].text
