"""Advice about parallel loops."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dlcompiler.analysis.advice.locality import WORTH
from dlcompiler.analysis.advice.subject import Finding, Rule, Subject
from dlcompiler.analysis.footprint import Nest
from dlcompiler.schedule import Step

LEAST_WORK = 500_000
"""Operations of a program below which one core is enough. A core that computes 30 of them in a
nanosecond needs about 20 µs, and waking another core may take as long."""
REGION_WORK = 50_000
"""Operations of a parallel region below which starting it takes longer than it saves."""
LEAST_BALANCE = 0.8
"""Least utilisation of the cores."""


def too_few(subject: Subject) -> Iterator[Finding]:
    """Find programs without parallel loops, and parallel loops that leave cores idle."""
    cores = subject.target.cores
    if cores == 1 or subject.all_operations < LEAST_WORK:
        return
    for top in subject.footprint.root.children:
        if subject.share(top) < 0.1:
            continue
        parallel = [n for n in top.walk() if n.loop is not None and n.loop.kind == "parallel"]
        if not parallel:
            stage, path = subject.name(top)
            yield Finding(
                stage, path,
                f"{subject.share(top):.0%} of the operations are in {path}, which runs on 1 of "
                f"{cores} cores",
                "high", _parallel(subject, top),
            )  # fmt: skip
        for nest in parallel:
            rounds = math.ceil(nest.trips / cores)
            balance = nest.trips / (rounds * cores) if rounds else 1.0
            if balance >= LEAST_BALANCE:
                continue
            stage, path = subject.name(nest)
            yield Finding(
                stage, path,
                f"{nest.trips} iterations of {path} on {cores} cores take {rounds} "
                f"{'round' if rounds == 1 else 'rounds'}, in which the cores are busy "
                f"{balance:.0%} of the time: split the work into more and shorter iterations",
                "high" if nest.trips < cores else "medium",
            )  # fmt: skip


def _parallel(subject: Subject, top: Nest) -> Step | None:
    stage, path = subject.name(top)
    return subject.step("parallel", stage, axis=path)


def short_regions(subject: Subject) -> Iterator[Finding]:
    """Find parallel loops inside other loops, which are started many times."""
    for nest in subject.footprint.nests:
        if nest.loop is None or nest.loop.kind != "parallel" or nest.runs < 2:
            continue
        each = subject.operations(nest) / nest.runs
        if each >= REGION_WORK:
            continue
        stage, path = subject.name(nest)
        outermost = subject.chain(nest)[0]
        other = subject.name(outermost)
        yield Finding(
            stage, path,
            f"{path} starts {nest.runs:,} parallel regions of {each:,.0f} operations each, and "
            f"starting one takes longer than computing it: make {other[1] or other[0]} parallel "
            "instead",
            "high", subject.step("parallel", other[0], axis=other[1]),
        )  # fmt: skip


def false_sharing(subject: Subject) -> Iterator[Finding]:
    """Find parallel loops whose neighbouring iterations write to the same cache line."""
    line = subject.footprint.line_bytes
    for nest in subject.footprint.nests:
        if nest.loop is None or nest.loop.kind != "parallel" or nest.trips < 2:
            continue
        for buffer, items in nest.references.items():
            stores = [item for item in items if item.access.is_write]
            apart = min((abs(subject.stride_bytes(item, nest) or 0) for item in stores), default=0)
            if not 0 < apart < line or stores[0].access.shared_from >= nest.depth:
                continue
            if subject.share(nest) < WORTH:
                continue
            stage, path = subject.name(nest)
            yield Finding(
                stage, path,
                f"iterations of {path} write to {buffer.name} {apart} bytes apart, so two cores "
                f"write to the same cache line of {line} bytes: give each iteration a whole line",
                "medium", _split(subject, stage, path, line // apart),
            )  # fmt: skip


def _split(subject: Subject, stage: str, path: str, factor: int) -> Step | None:
    return subject.step("split", stage, axis=path, factor=factor)


RULES = (
    Rule(
        "too little parallel work",
        "R. L. Graham, Bounds on Multiprocessing Timing Anomalies, SIAM J. Appl. Math. 17(2), 1969",
        too_few,
    ),
    Rule(
        "short parallel regions",
        "J. M. Bull, Measuring Synchronisation and Scheduling Overheads in OpenMP, EWOMP 1999",
        short_regions,
    ),
    Rule(
        "false sharing",
        "J. Torrellas, M. S. Lam, J. L. Hennessy, False Sharing and Spatial Locality in "
        "Multiprocessor Caches, IEEE Transactions on Computers 43(6), 1994",
        false_sharing,
    ),
)
