"""The loops of a nest that run over the numbers of one element."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dlcompiler.codegen.accelerator.forms import Form
from dlcompiler.codegen.accelerator.nests import Split
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import Var


@dataclass(frozen=True, slots=True)
class Lanes:
    """The loops over the numbers of an element; a loop may go on over further elements."""

    inside: Mapping[Var, int]
    """Variable -> how many of its iterations are inside an element."""
    rest: Mapping[Var, int]
    """Variable -> over how many elements it then goes on; 1 if it stays inside."""

    def factor(self, form: Form, var: Var) -> int:
        """Return the distance of elements along a loop; [numbers]."""
        return form.factor(var) * self.inside.get(var, 1)


def lanes_of(split: Split, numbers: int, where: str) -> Lanes:
    """Return the loops over one element.

    All sums of the split must run through the numbers of an element in the same order.

    Parameters
    ----------
    split
        The nest. Loops over an element that a condition bounds are refused.
    numbers
        Numbers in an element; [1].
    where
        The operation, for messages.

    Raises
    ------
    ScheduleError
        The loops do not cover whole elements, or not in order.
    """
    forms, extents = split.forms(), split.nest.extents
    inside: dict[Var, int] = {}
    rest: dict[Var, int] = {}
    reached = 1
    while reached < numbers:
        var = next(
            (
                v
                for v in split.inner
                if v not in inside and all(f.factor(v) == reached for f in forms)
            ),
            None,
        )
        count = min(extents[var], numbers // reached) if var is not None else 0
        if var is None or numbers % (reached * count) or extents[var] % count:
            raise ScheduleError(
                where, "its loops do not cover whole elements",
                got=f"{reached} of {numbers} numbers are neighbours in all its operands",
                expected=f"loops over {numbers} neighbouring numbers, in the same order everywhere",
                because="an instruction moves and computes whole elements",
                hint="lay the tensors out in blocks of an element's shape",
            )  # fmt: skip
        inside[var], rest[var] = count, extents[var] // count
        reached *= count
    bounded = {b.var for b in split.bounds((*split.nest.conditions, *split.pads))}
    if partial := [var for var in inside if var in bounded]:
        raise ScheduleError(
            where, f"a condition on {partial[0].name} keeps a part of an element",
            got=" and ".join(map(str, (*split.nest.conditions, *split.pads))),
            hint="pad the tensors to whole blocks",
        )  # fmt: skip
    return Lanes(inside, rest)
