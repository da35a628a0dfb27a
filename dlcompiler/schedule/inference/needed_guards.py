"""Leave out the guards of a stage that its other guards imply.

A loop of 64,000 elements in groups of 4, 128 threads and 2 steps gets the guards ``o*2 + e < 125``,
``(o*2 + e)*128 + t < 16000`` and ``((o*2 + e)*128 + t)*4 + v < 64000``. Each of them implies the
two others, so that one test suffices. The one with the fewest variables stays: it is tested
outside the other loops. Of these, the shortest one stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.arith import Analyzer
from dlcompiler.arith.implication import implies
from dlcompiler.ir import Compare, Expr, free_vars, walk

_MOST_GUARDS = 8
"""Beyond this number nothing is left out: the proofs would take too long; [1]."""


def needed_guards(guards: Sequence[Expr], analyzer: Analyzer) -> tuple[Expr, ...]:
    """Return the guards without those that follow from the others, in the same order.

    Parameters
    ----------
    guards
        Conditions that hold together.
    analyzer
        Knows the ranges of the variables.
    """
    if not 1 < len(guards) <= _MOST_GUARDS:
        return tuple(guards)
    kept = list(guards)
    for guard in sorted(guards, key=_cost, reverse=True):
        others = [other for other in kept if other is not guard]
        if others and isinstance(guard, Compare) and implies(others, guard, analyzer):
            kept = others
    return tuple(kept)


def _cost(guard: Expr) -> tuple[int, int]:
    return len(free_vars(guard)), sum(1 for _ in walk(guard))
