"""Texts of C expressions, each with the precedence of its outermost operation."""

from __future__ import annotations

from typing import NamedTuple

CHOICE, OR, AND, COMPARE, BITS, SUM, PRODUCT, UNARY, ATOM = range(1, 10)
"""Precedence levels, loosest first. Bit operations share one: operands get parentheses."""


class Text(NamedTuple):
    """The text of an expression and its precedence level."""

    text: str
    level: int = ATOM

    def at(self, level: int) -> str:
        """Return the text as an operand, in parentheses if its precedence is below `level`."""
        return self.text if self.level >= level else f"({self.text})"


def infix(symbol: str, a: Text, b: Text, level: int) -> Text:
    """Return ``a symbol b`` for operations that associate to the left."""
    return Text(f"{a.at(level)} {symbol} {b.at(level + 1)}", level)


def tight_infix(symbol: str, a: Text, b: Text) -> Text:
    """Return a product of indices, which reads best without spaces: ``i*32 + j``."""
    return Text(f"{a.at(PRODUCT)}{symbol}{b.at(PRODUCT + 1)}", PRODUCT)


def strict_infix(symbol: str, a: Text, b: Text, level: int) -> Text:
    """Return ``a symbol b`` with parentheses around all but the simplest operands.

    Compilers warn about bit operations without them.
    """
    return Text(f"{a.at(UNARY)} {symbol} {b.at(UNARY)}", level)


def conversion(type_: str, value: Text) -> Text:
    """Return ``(type) value``."""
    return Text(f"({type_}){value.at(UNARY)}", UNARY)


def choice(condition: Text, a: Text, b: Text) -> Text:
    """Return ``condition ? a : b``."""
    return Text(f"{condition.at(OR)} ? {a.at(OR)} : {b.at(OR)}", CHOICE)
