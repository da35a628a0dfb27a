"""`SpecializedCondition`: specialise code for sizes that fulfil conditions."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

from dlcompiler.compat.missing import Named
from dlcompiler.ir import Expr

_stack: ContextVar[tuple[SpecializedCondition, ...]] = ContextVar("conditions", default=())


class SpecializedCondition(Named):
    """Conditions on the symbols of schedules that are lowered or built inside a ``with``.

    The function gets a second body, which runs for sizes that fulfil all conditions:
    `pipeline.lower` takes them as ``conditions``. Of nested contexts, the innermost is used.

    Parameters
    ----------
    conditions : Expr or sequence of Expr
        Such as ``[n >= 128, m % 4 == 0]``; all must hold.
    """

    classic = "tvm.te.SpecializedCondition"

    def __init__(self, conditions: Expr | Sequence[Expr]) -> None:
        items = conditions if isinstance(conditions, list | tuple) else (conditions,)
        self.clauses: tuple[Any, ...] = tuple(items)
        """The conditions."""

    @staticmethod
    def current() -> SpecializedCondition | None:
        """Return the innermost context; None outside all contexts."""
        return _stack.get()[-1] if _stack.get() else None

    def __enter__(self) -> SpecializedCondition:
        _stack.set((*_stack.get(), self))
        return self

    def __exit__(self, *error: object) -> None:
        _stack.set(_stack.get()[:-1])


def current_conditions() -> tuple[Any, ...]:
    """Return the conditions of the innermost context."""
    current = SpecializedCondition.current()
    return () if current is None else current.clauses
