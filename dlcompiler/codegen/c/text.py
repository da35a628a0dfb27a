"""Pieces of C expressions, each with how tightly its outermost operation binds."""

from __future__ import annotations

from typing import NamedTuple

CHOICE, OR, AND, COMPARE, BITS, SUM, PRODUCT, UNARY, ATOM = range(1, 10)
"""Levels of binding, loosest first. Shifts and bit operations are one: they never mix here."""


class Text(NamedTuple):
    """An expression and its level."""

    text: str
    level: int = ATOM

    def at(self, level: int) -> str:
        """Return the text for an operand that must bind at least this tightly."""
        return self.text if self.level >= level else f"({self.text})"


def infix(symbol: str, a: Text, b: Text, level: int) -> Text:
    """Return ``a symbol b``, where operations of this level go from left to right."""
    return Text(f"{a.at(level)} {symbol} {b.at(level + 1)}", level)


def tight_infix(symbol: str, a: Text, b: Text) -> Text:
    """Return a product of indices, which reads best without spaces: ``i*32 + j``."""
    return Text(f"{a.at(PRODUCT)}{symbol}{b.at(PRODUCT + 1)}", PRODUCT)


def strict_infix(symbol: str, a: Text, b: Text, level: int) -> Text:
    """Return ``a symbol b`` with parentheses around all but the simplest operands.

    Compilers ask for them where precedence surprises people.
    """
    return Text(f"{a.at(UNARY)} {symbol} {b.at(UNARY)}", level)


def conversion(type_: str, value: Text) -> Text:
    """Return ``(type) value``."""
    return Text(f"({type_}){value.at(UNARY)}", UNARY)


def choice(condition: Text, a: Text, b: Text) -> Text:
    """Return ``condition ? a : b``."""
    return Text(f"{condition.at(OR)} ? {a.at(OR)} : {b.at(OR)}", CHOICE)
