"""Verdicts on a step: `Legal`, `Illegal` or `Pending`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, ParamSpec, TypeAlias

from dlcompiler.display import render

P = ParamSpec("P")
IllegalKind: TypeAlias = Literal["structural", "semantic", "limit"]


@dataclass(frozen=True, slots=True)
class Legal:
    """The step keeps the meaning of the program."""

    def __bool__(self) -> bool:
        return True

    def _repr_html_(self) -> str:
        return render("verdict", self)


@dataclass(frozen=True, slots=True)
class Illegal:
    """The step is refused.

    `kind` is *structural* (it cannot be applied here), *semantic* (it would change the result,
    whatever follows) or *limit* (a limit of the target or of this version).
    """

    kind: IllegalKind
    reason: str
    hint: str | None = None
    got: str | None = None
    because: str | None = None
    conflicts: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """Keys of the conflicting loops (``C/k``), stages (``C``) and statements (``C//body``)."""
    expected: str | None = field(default=None, repr=False)
    """What would be accepted, if the hint does not say it."""

    def __bool__(self) -> bool:
        return False

    def _repr_html_(self) -> str:
        return render("verdict", self)


@dataclass(frozen=True, slots=True)
class Pending:
    """The step is legal now, but a later step must fulfil an obligation before lowering."""

    obligation: str

    def __bool__(self) -> bool:
        return True

    def _repr_html_(self) -> str:
        return render("verdict", self)


Verdict: TypeAlias = Legal | Illegal | Pending
LEGAL = Legal()


class Refused(Exception):  # noqa: N818 - an answer, not a mistake
    """Exception by which a helper of a check refuses a step; `answering` returns its verdict."""

    def __init__(self, verdict: Illegal) -> None:
        super().__init__(verdict.reason)
        self.verdict = verdict


def answering(check: Callable[P, Verdict]) -> Callable[P, Verdict]:
    """Decorate a check: if one of its helpers raises `Refused`, return that verdict."""

    @functools.wraps(check)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Verdict:
        try:
            return check(*args, **kwargs)
        except Refused as refused:
            return refused.verdict

    return wrapper
