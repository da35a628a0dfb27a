"""Cards and texts of what a program does on a GPU: time, counters, resources, occupancy."""

from __future__ import annotations

from dlcompiler.pipeline.gpu_report import GPUReport, KernelReport, times_on
from dlcompiler.runtime.timing import format_seconds
from dlcompiler.simulate.gpu import AccessCounters
from dlcompiler.simulate.gpu.time import KernelTime
from dlcompiler.views.cards.card import Card, card, card_html
from dlcompiler.views.render.markup import Markup
from dlcompiler.views.render.scene import Cell, Table
from dlcompiler.views.render.text import text_table
from dlcompiler.views.render.units import percent

ACCESSES = (
    "access", "memory", "bytes of a thread", "requests of warps", "sectors", "sectors per request",
    "used bytes", "passes", "conflict degree",
)  # fmt: skip
TERMS = ("resource", "time if it alone limited", "of the whole", "formula", "source of the rate")
INSTRUCTIONS = ("instruction", "of warps", "of threads", "active threads")


def gpu_report_html(report: GPUReport) -> Markup:
    """Return the card of a report."""
    return card_html(gpu_report_card(report))


def gpu_report_text(report: GPUReport) -> str:
    """Return a report as text."""
    parts = [f"{report.name} on {report.target.name} ({_sources(report)})"]
    for kernel in report.kernels:
        facts = [f"  {label}: {text}" for label, text in _facts(kernel)]
        tables = (text_table(TERMS, _term_rows(kernel)), text_table(ACCESSES, _access_rows(kernel)),
                  text_table(INSTRUCTIONS, _instruction_rows(kernel)))  # fmt: skip
        parts += ["", kernel.counters.name, *facts, *("\n" + table for table in tables)]
    return "\n".join(parts)


def gpu_report_card(report: GPUReport) -> Card:
    """Return the card of a report."""
    kernels = report.kernels
    count = "1 kernel" if len(kernels) == 1 else f"{len(kernels)} kernels"
    facts: list[tuple[str, str]] = []
    tables: list[tuple[str, Table]] = []
    for kernel in kernels:
        name = kernel.counters.name
        before = f"{name}: " if len(kernels) > 1 else ""
        facts += [(f"{before}{label}", text) for label, text in _facts(kernel)]
        tables += [
            (f"{before}terms of the predicted time",
             {"columns": list(TERMS), "rows": _term_rows(kernel)}),
            (f"{before}accesses to memory",
             {"columns": list(ACCESSES), "rows": _access_rows(kernel)}),
            (f"{before}instructions",
             {"columns": list(INSTRUCTIONS), "rows": _instruction_rows(kernel)}),
        ]  # fmt: skip
    return card(
        f"{report.name} on {report.target.name}", f"{count}; {_sources(report)}",
        facts=facts, tables=tables,
    )  # fmt: skip


def access_sentence(access: AccessCounters) -> str:
    """Return in words what an access of a warp costs."""
    verb = "A store to" if access.site.is_write else "A load from"
    name = f"{verb} {access.site.buffer.name}"
    if not access.most.requests:
        return f"{name} is never executed."
    least = "" if access.is_exact else "up to "
    if access.space == "shared":
        degree = access.conflict_degree or 0
        if degree <= 1:
            return f"{name} by a warp has no bank conflicts."
        return (
            f"{name} by a warp takes {least}{degree:.3g} times as many passes as without conflicts."
        )
    each, used = access.sectors_per_request or 0, access.efficiency or 0
    return (
        f"{name} by a warp moves {least}{each:.3g} sectors of 32 bytes; "
        f"{percent(min(used, 1))} of these bytes are used."
    )


def _facts(kernel: KernelReport) -> list[tuple[str, str]]:
    counters, needs = kernel.counters, kernel.resources
    found = kernel.occupancy
    local = f", {needs.local_bytes} bytes in local memory" if needs.local_bytes else ""
    spilled = f", {needs.spill_bytes} of them spilled" if needs.spill_bytes else ""
    active = counters.active_fraction
    exact = "" if counters.is_exact else "; data decides some, of which the greatest are shown"
    return [
        *_time_facts(kernel.time),
        ("launch", f"{counters.blocks:,} blocks of {counters.threads:,} threads"),
        ("registers", f"{needs.registers} of a thread{local}{spilled} ({needs.provenance})"),
        ("shared memory", f"{needs.shared_bytes:,} bytes of a block"),
        ("occupancy", f"{found} (simulated)" if found else "not known for this target"),
        ("active threads of a warp", f"{percent(active)}{exact}" if active else "none"),
    ]


def _sources(report: GPUReport) -> str:
    """Return where the numbers of a report come from."""
    counters = f"counters are {report.provenance}"
    if report.seconds is None:
        return counters
    return f"{format_seconds(report.seconds)} {times_on(report.target)}; {counters}"


def _time_facts(time: KernelTime | None) -> list[tuple[str, str]]:
    if time is None:
        return [
            (
                "predicted time",
                "none: no rates for this target or for tensor cores, or no block fits",
            )
        ]
    least, most = format_seconds(time.least_s), format_seconds(time.most_s)
    predicted, low, high = time.dram_bytes
    added = ", ".join(
        f"{format_seconds(seconds)} {what}"
        for seconds, what in (
            (time.latency_s, "of waiting"), (time.tail_s, "by the last blocks"),
            (time.launch_s, "to launch"),
        )
    )  # fmt: skip
    return [
        ("predicted time", f"{format_seconds(time.seconds)}, from {least} (caches keep all they "
         f"could, highest clock) to {most} (they keep nothing, lowest clock)"),
        ("what binds", f"{time.bound_by}; next {time.next_bound}; {added}"),
        ("waves of blocks", f"{time.waves:.3g}"),
        ("memory", f"{predicted:,.0f} bytes, from {low:,.0f} to {high:,.0f}; L1 answers "
         f"{percent(time.l1_hits)} of the loads"),
    ]  # fmt: skip


def _term_rows(kernel: KernelReport) -> list[list[Cell]]:
    time = kernel.time
    if time is None:
        return []
    return [
        [term.name, format_seconds(term.seconds), percent(term.seconds / time.seconds),
         term.formula, term.source]
        for term in time.terms
    ]  # fmt: skip


def _access_rows(kernel: KernelReport) -> list[list[Cell]]:
    return [_access_row(access) for access in kernel.counters.accesses]


def _access_row(access: AccessCounters) -> list[Cell]:
    most, is_global = access.most, access.space == "global"
    used = access.efficiency
    return [
        access.name, access.space, access.bytes, _range(access.least.requests, most.requests),
        _range(access.least.sectors, most.sectors) if is_global else "",
        _rounded(access.sectors_per_request), percent(used) if used is not None else "",
        "" if is_global else _range(access.least.wavefronts, most.wavefronts),
        _rounded(access.conflict_degree),
    ]  # fmt: skip


def _instruction_rows(kernel: KernelReport) -> list[list[Cell]]:
    size = kernel.counters.warp_size
    return [
        [
            kind, _range(least.requests, most.requests), _range(least.lanes, most.lanes),
            percent(most.lanes / (size * most.requests)) if most.requests else "",
        ]
        for kind, (least, most) in kernel.counters.instructions.items()
    ]  # fmt: skip


def _range(least: int, most: int) -> str:
    return f"{most:,}" if least == most else f"{least:,} to {most:,}"


def _rounded(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
