"""Find races: iterations of a parallel or vectorized loop whose order matters.

Two iterations of a loop race if they access the same element and at least one of them writes it.
The verdict on a loop is *safe*, *violated* (with two iterations and the element as proof), or
*unknown*::

    def main(A: float32[4, 8], C: float32[4]):       races of main: 1 of 2 loops violated
        for i in parallel(4):                          parallel i (C): safe
            C[i] = 0.0                                 parallel k (C): violated
            for k in parallel(8):                        C[0] is written at i=0, k=0
                C[i] += A[i, k]                          and written at i=0, k=1

Loads and stores are compared with their guards. If a guard or an index depends on data, the loop is
unknown unless the other indices and guards decide.

**Source:** A. Bernstein, "Analysis of programs for parallel processing", IEEE EC-15 (1966).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dlcompiler.analysis.accesses import (
    Access,
    Accesses,
    Loop,
    collect_accesses,
    has_concurrent_loops,
)
from dlcompiler.analysis.dependences import Dependence, carried
from dlcompiler.display import render
from dlcompiler.ir import SHARED_SCOPES, Buffer, For, PrimFunc, Store, Var
from dlcompiler.ir.printer import format_store

Status: TypeAlias = Literal["safe", "violated", "unknown"]
ORDER: tuple[Status, ...] = ("safe", "unknown", "violated")


@dataclass(frozen=True, slots=True)
class LoopVerdict:
    """Whether the iterations of one loop, or the lanes of one store, are independent."""

    loop: Loop
    status: Status
    conflict: Dependence | None = None
    """Two accesses that touch, or may touch, one element in two iterations."""

    @property
    def stages(self) -> tuple[str, ...]:
        """Names of the stages that the loop belongs to."""
        statement = self.loop.statement
        origin = statement.origin if isinstance(statement, For | Store) else ()
        return tuple(dict.fromkeys(ref.stage for ref in origin))

    @property
    def label(self) -> str:
        """The loop as text: its kind, its variable, its stages."""
        stages = f" ({', '.join(self.stages)})" if self.stages else ""
        match self.loop.statement:
            case Store() as store:
                return f"lanes of {format_store(store)}{stages}"
            case _:
                return f"{self.loop.kind} {self.loop.var.name}{stages}"

    @property
    def reason(self) -> str:
        """Why the loop is not safe, on one or two lines; '' if it is."""
        return "\n".join(_reason(self.conflict, self.loop.var)) if self.conflict else ""

    def __str__(self) -> str:
        lines = [f"{self.label}: {self.status}", *self.reason.splitlines()]
        return "\n  ".join(lines)


@dataclass(frozen=True, slots=True)
class RaceReport:
    """The verdicts on all concurrent loops of a function, outermost first."""

    name: str
    verdicts: tuple[LoopVerdict, ...]

    @property
    def status(self) -> Status:
        """The worst verdict: violated, then unknown, then safe."""
        return max((v.status for v in self.verdicts), key=ORDER.index, default="safe")

    @property
    def violations(self) -> tuple[LoopVerdict, ...]:
        """The loops with two iterations that are shown to conflict."""
        return tuple(v for v in self.verdicts if v.status == "violated")

    @property
    def unknowns(self) -> tuple[LoopVerdict, ...]:
        """The loops for which neither safety nor a conflict could be shown."""
        return tuple(v for v in self.verdicts if v.status == "unknown")

    def __str__(self) -> str:
        if not self.verdicts:
            return f"races of {self.name}: no parallel or vectorized loop"
        lines = [f"races of {self.name}: {_summary(self)}"]
        for verdict in self.verdicts:
            lines += [f"  {line}" for line in str(verdict).splitlines()]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return render("races", self)


def analyze_races(func: PrimFunc) -> RaceReport:
    """Tell for each parallel or vectorized loop whether its iterations are independent.

    Parameters
    ----------
    func
        A lowered function, before or after the passes: the lanes of a vector store count as
        iterations that write at the same time.

    Returns
    -------
    RaceReport

    Notes
    -----
    Time grows with the number of accesses inside concurrent loops while one formula gives the
    iteration from the element (see `injectivity`), which it does for all that a schedule can make.
    """
    if not has_concurrent_loops(func):
        return RaceReport(func.name, ())
    return races_of(collect_accesses(func))


def races_of(accesses: Accesses) -> RaceReport:
    """Find races from the accesses of a function; see `analyze_races`."""
    verdicts = (_verdict(loop, accesses) for loop in accesses.loops if loop.is_concurrent)
    shown = (v for v in verdicts if v.loop.kind != "lanes" or v.status != "safe")
    return RaceReport(accesses.func.name, tuple(shown))


def _verdict(loop: Loop, accesses: Accesses) -> LoopVerdict:
    doubtful: Dependence | None = None
    for conflict in _conflicts(loop, accesses):
        if conflict.witness is not None:
            return LoopVerdict(loop, "violated", conflict)
        if doubtful is None or doubtful.buffer.scope in SHARED_SCOPES:
            doubtful = conflict
    return LoopVerdict(loop, "unknown" if doubtful else "safe", doubtful)


def _conflicts(loop: Loop, accesses: Accesses) -> Iterator[Dependence]:
    for group in accesses.shared_in(loop).values():
        # A vector statement loads all its lanes before it stores any: only its stores may conflict.
        chosen = [a for a in group if a.is_write] if loop.kind == "lanes" else group
        yield from carried(loop, chosen, accesses.analyzer)


def _reason(conflict: Dependence, var: Var) -> Iterator[str]:
    witness = conflict.witness
    if witness is None:
        shared = f"one element of {conflict.buffer.name}"
        yield f"iterations of {var.name} may touch {shared}: {conflict.doubt}"
        return
    element = format_element(conflict.buffer, witness.element)
    yield f"{element} is {_did(conflict.source)} at {format_values(witness.first)}"
    where = f", where {format_values(witness.symbols)}" if witness.symbols else ""
    yield f"and {_did(conflict.sink)} at {format_values(witness.second)}{where}"


def _did(access: Access) -> str:
    return "written" if access.is_write else "read"


def format_values(values: Mapping[Loop, int] | Mapping[Var, int]) -> str:
    """Return variables with their values, such as ``i=0, j=3``."""
    names = ((key.name if isinstance(key, Var) else key.var.name) for key in values)
    return ", ".join(f"{name}={value}" for name, value in zip(names, values.values(), strict=True))


def format_element(buffer: Buffer, index: Iterable[int]) -> str:
    """Return an element as text, such as ``C[0, 3]``."""
    return f"{buffer.name}[{', '.join(map(str, index)) or '()'}]"


def _summary(report: RaceReport) -> str:
    count = len(report.verdicts)
    loops = f"{count} loop{'s' if count > 1 else ''}"
    bad = [
        f"{len(verdicts)} {status}"
        for status, verdicts in (("violated", report.violations), ("unknown", report.unknowns))
        if verdicts
    ]
    return f"{loops}, {', '.join(bad) or 'all safe'}"
