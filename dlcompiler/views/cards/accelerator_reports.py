"""Card of what a program does on an accelerator: cycles, engines, operations and bytes."""

from __future__ import annotations

from dlcompiler.errors import UserError
from dlcompiler.pipeline.accelerator_kernel import AcceleratorReport
from dlcompiler.runtime.timing import format_seconds
from dlcompiler.simulate.accelerators.demand import bandwidth_of, peak_of
from dlcompiler.views.cards.card import Card, card, card_html
from dlcompiler.views.device.timeline import timeline_scene
from dlcompiler.views.device.timeline_lanes import provenance_of_runs
from dlcompiler.views.render.markup import Markup
from dlcompiler.views.render.scene import Cell
from dlcompiler.views.render.units import format_bytes, format_count, percent

MOVED = ("memory", "loaded [byte]", "stored [byte]")


def accelerator_report_html(report: AcceleratorReport) -> Markup:
    """Return the card of a report."""
    return card_html(accelerator_report_card(report))


def accelerator_report_card(report: AcceleratorReport) -> Card:
    """Return the card of a report, with its timeline."""
    demand = report.demand
    names = list(dict.fromkeys([*demand.loaded, *demand.stored]))
    rows: list[list[Cell]] = [
        [name, demand.loaded.get(name, 0), demand.stored.get(name, 0)] for name in names
    ]
    rows.append(["instructions", demand.instruction_bytes, 0])
    return card(
        f"{report.name} on {report.target.name}", str(report),
        facts=_facts(report),
        scene=timeline_scene(report.timeline) if report.runs else None,
        tables=[("bytes to and from DRAM", {"columns": list(MOVED), "rows": rows})],
    )  # fmt: skip


def _facts(report: AcceleratorReport) -> list[tuple[str, str]]:
    machine, demand = report.target.accelerator, report.demand
    cycles = max(report.cycles, 1)
    count = sum(len(run.program) for run in report.runs)
    most = bandwidth_of(machine)
    parts = f" in {len(report.runs)} parts" if len(report.runs) > 1 else ""
    return [
        ("time", f"{format_seconds(report.seconds)} at {machine.clock_hz / 1e6:g} MHz "
         f"({provenance_of_runs(report.runs)})"),
        ("instructions", f"{count:,}{parts}"),
        ("operations", _operations(report)),
        ("DRAM", f"{format_bytes(demand.bytes)}, {demand.bytes / cycles:.3g} bytes a cycle: "
         f"{percent(min(demand.bytes / cycles / most, 1))} of {most:g}" if most else ""),
        ("intensity", f"{demand.intensity:.3g} operations a byte" if demand.bytes else ""),
    ]  # fmt: skip


def _operations(report: AcceleratorReport) -> str:
    """Return how many operations were executed, and the share of the peak that this is."""
    cycles, count = max(report.cycles, 1), report.demand.operations
    try:
        peak = peak_of(report.target.accelerator)
    except UserError:  # nothing but copies and elementwise instructions
        return ""
    return (
        f"{format_count(count)} of tensor instructions, {count / cycles:.3g} a cycle: "
        f"{percent(min(count / cycles / peak, 1))} of the peak of {peak:.4g}"
    )
