"""Check the numeric limits of schedules, as formulas of knobs."""

from __future__ import annotations

from dlcompiler.autotune.features.numbers import Num, at_most, multiply, product
from dlcompiler.autotune.features.statements import Statement
from dlcompiler.schedule.legality.validity import MAX_COPIES, MAX_EXTENT


def is_legal(statements: tuple[Statement, ...]) -> Num:
    """Return 1 where no limit of schedules is exceeded, else 0.

    Only these limits depend on numbers: too long loops and too many unrolled copies. All other
    refusals depend on the steps alone, which are the same for all configs of a skeleton.
    """
    result: Num = 1
    for statement in statements:
        loops = statement.own_loops
        copies = product([loop.extent for loop in loops if loop.kind == "unrolled"])
        result = multiply(result, at_most(copies, MAX_COPIES))
        for loop in loops:
            result = multiply(result, at_most(loop.extent, MAX_EXTENT))
    return result
