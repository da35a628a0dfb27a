"""Laws that justify the rules of this package, in a form that the tests can prove.

A rule on indices is a function, and `law` says what it uses. A rule on data is the law itself: the
tables in `dlcompiler.arith.data` are what the simplifier matches. The tests prove each law with an
SMT solver, over the integers for indices and over bit vectors for data, and fail for a rule that
has none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from dlcompiler.ir import Expr, Var

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, eq=False)
class Law:
    """Conditions that hold for all integers that satisfy the conditions `when`.

    The proof of a claim may use the claims before it.
    """

    claims: tuple[Expr, ...]
    when: tuple[Expr, ...] = ()
    bits: int = 0
    """Number of bits of the integers that it is proved for; 0 if it is proved for all."""


#: The laws of each rule on indices, by the name of its function.
INDEX_LAWS: dict[str, tuple[Law, ...]] = {}


def law(*claims: Expr, when: tuple[Expr, ...] = (), bits: int = 0) -> Callable[[F], F]:
    """Declare the law that a rule on indices relies on; its variables stand for any integer."""

    def enter(rule: F) -> F:
        name = rule_name(rule)
        INDEX_LAWS[name] = (*INDEX_LAWS.get(name, ()), Law(claims, when, bits))
        return rule

    return enter


def rule_name(rule: Callable[..., Any]) -> str:
    """Return the name of a rule: its module and function."""
    return f"{rule.__module__}.{rule.__qualname__}"


# The variables of laws. A law on indices uses them as integers, one on data as values of one dtype.
x, y, z, c, d, k, q, r = (Var(name) for name in "xyzcdkqr")
