"""Choose which of the threads that share a reduction stores its result.

*Before*, then *after* ``set_store_predicate("threadIdx.x == 3")``::

    if k.inner == 0:                    if k.inner == 3:
        B[i] = B.parts[0]                   B[i] = B.parts[0]

All threads can read the result, and one thread stores it: by default, the first one. In classic TVM
all threads store it, and ``s[B].set_store_predicate(tx.var.equal(0))`` requests the default of
dlcompiler. Conditions of any other form would leave out elements, and are refused.
In TVM ``set_store_predicate``; Halide has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from dlcompiler.ir import Compare, Const, Expr, Logical, Var
from dlcompiler.schedule.inference.thread_loops import reduced_by_threads
from dlcompiler.schedule.legality.obligations import extents_of
from dlcompiler.schedule.primitives.base import Primitive, StepContext, require_loops
from dlcompiler.schedule.state import StageState, State
from dlcompiler.schedule.verdict import LEGAL, Illegal, Refused, Verdict, answering

EXAMPLE = "threadIdx.x == 0"
_CHOICE = re.compile(r"(threadIdx\.[xyz]) == (\d{1,9})")


@answering
def check(state: State, stage: StageState, *, predicate: Any) -> Verdict:
    """Refuse conditions on threads that do not exist or do not share the reduction."""
    require_loops(stage)
    chosen = _chosen(predicate)
    shared = {stage.kind(leaf): leaf for leaf in reduced_by_threads(stage)}
    if not shared:
        raise Refused(
            Illegal(
                "semantic",
                f"elements of {stage.name} would not be stored",
                got=predicate,
                because=f"each thread computes elements of its own: the threads share no reduction "
                f"of {stage.name}",
                hint="bind a reduction loop to threadIdx.x first",
                conflicts=(stage.body_key,),
            )
        )
    for thread, number in chosen.items():
        if thread not in shared:
            raise Refused(
                Illegal(
                    "semantic",
                    f"elements of {stage.name} would not be stored",
                    got=f"{thread} == {number}",
                    because=f"the threads of {thread} do not share the reduction",
                    hint=f"choose among those of {', '.join(shared)}",
                    conflicts=(stage.body_key,),
                )
            )
        count = extents_of(state, stage)[shared[thread]]
        if not isinstance(count, int) or number >= count:
            raise Refused(
                Illegal(
                    "semantic",
                    f"{stage.name} would not be stored: there is no such thread",
                    got=f"{thread} == {number}",
                    hint=f"{thread} counts from 0 to {count} - 1",
                    conflicts=(stage.key(shared[thread]),),
                )
            )
    return LEGAL


def _chosen(predicate: Any) -> Mapping[str, int]:
    """Return the thread number that a condition chooses on each thread axis."""
    parts = str(predicate).split(" and ")
    found = [_CHOICE.fullmatch(part) for part in parts]
    if not all(found) or len({match[1] for match in found if match}) < len(parts):
        raise Refused(
            Illegal(
                "structural",
                "it chooses no thread",
                got=repr(predicate),
                hint=f'say which thread stores: "{EXAMPLE}", several joined by " and "',
            )
        )
    return {match[1]: int(match[2]) for match in found if match}


def text_of(predicate: Any) -> str:
    """Return a condition as the text in a step: ``"threadIdx.x == 0"``.

    Parameters
    ----------
    predicate : str or Expr
        Classic code gives an expression of the variable of a thread axis: ``tx.var.equal(0)``.
    """
    return " and ".join(_parts(predicate)) if isinstance(predicate, Expr) else str(predicate)


def _parts(expr: Expr) -> Iterator[str]:
    match expr:
        case Logical("and", a, b):
            yield from _parts(a)
            yield from _parts(b)
        case Compare("eq", Var() as thread, Const(number)) | Compare(
            "eq", Const(number), Var() as thread
        ):
            yield f"{thread.name} == {number}"
        case _:
            yield str(expr)


def apply(
    state: State, stage: StageState, context: StepContext, *, predicate: str
) -> tuple[State, None]:
    """Return the next state."""
    stage = replace(stage, storing={**stage.storing, **_chosen(predicate)})
    return state.with_stage(stage, context.state_id), None


SET_STORE_PREDICATE = Primitive("set_store_predicate", {"predicate": "text"}, check, apply)
