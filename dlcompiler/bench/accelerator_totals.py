"""The convolutions of ResNet-18 after the first on VTA, term by term, beside published totals.

What takes the cycles of the engine that computes is counted instruction by instruction: products,
resets, operations of the ALU, loads into accumulators, and what the engine waits for. The terms of
a profile add up to its cycles. Nothing is fitted. All numbers but the published ones are simulated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from dlcompiler.ops import operator
from dlcompiler.ops.packed.extents import extents_of
from dlcompiler.pipeline import build
from dlcompiler.pipeline.accelerator_kernel import AcceleratorKernel, AcceleratorReport
from dlcompiler.simulate.accelerators import Step
from dlcompiler.simulate.accelerators.timing.run import TimedRun
from dlcompiler.space import Workload
from dlcompiler.target import Target
from dlcompiler.target.accelerators.encodings import operand_fields
from dlcompiler.target.accelerators.vta import VtaConfig, vta

COUNTS: Mapping[str, int] = {
    "C2": 4, "C4": 1, "C5": 1, "C6": 3, "C7": 1, "C8": 1, "C9": 3, "C10": 1, "C11": 1, "C12": 3,
}  # fmt: skip
"""Layer -> how often ResNet-18 has it; C3 is not in version 1."""
SUMS: Mapping[str, int] = {"C2": 2, "C6": 2, "C9": 2, "C12": 2}
"""Layer -> how many of these end with the sum of a residual block."""
PUBLISHED = {"before": 27_679_515, "after": 7_729_601}
"""Cycles of ResNet-18 version 1 before and after the GEMM of VTA's RTL was pipelined.

**Source:** apache/tvm-vta, pull request 30. The ALU was pipelined before, in pull request 27."""
GEMM_CYCLES = 4
"""Cycles of a product before the GEMM was pipelined; [clock]."""
_WAITS = {
    "fetch": "waits for instructions", "load->compute": "waits for loads",
    "store->compute": "waits for stores",
}  # fmt: skip


def totals(
    say: Callable[[str], None],
    workload_of: Callable[[str], Workload],
    counts: Mapping[str, int] = COUNTS,
) -> dict[str, Any]:
    """Simulate the layers with biases in both profiles; return that part of the document.

    Parameters
    ----------
    say
        Called with the rows of the table.
    workload_of
        Returns a layer of a name.
    counts
        As `COUNTS`.
    """
    columns = {
        "profile A": _total("A", workload_of, counts, {}),
        "profile B": _total("B", workload_of, counts, {}),
        "profile B with sums of residuals": _total("B", workload_of, counts, SUMS),
    }
    products = sum(n * extents_of(workload_of(name)).updates for name, n in counts.items())
    names = list(dict.fromkeys(name for terms in columns.values() for name in terms))
    say("cycles of the engine that computes: " + ", ".join(columns))
    for name in names:
        say(f"{name:<42}" + "".join(f"{terms[name]:>13,}" for terms in columns.values()))
    cycles = {name: sum(terms.values()) for name, terms in columns.items()}
    say(f"{'all':<42}" + "".join(f"{n:>13,}" for n in cycles.values()))
    slow = {
        name: n + (GEMM_CYCLES - 1) * products for name, n in cycles.items() if name != "profile A"
    }
    say(f"published: {PUBLISHED['before']:,} before the GEMM was pipelined, {PUBLISHED['after']:,} "
        f"after; the difference is {(PUBLISHED['before'] - PUBLISHED['after']) / products:.3f} "
        "cycles a product")  # fmt: skip
    return {
        "published": PUBLISHED, "products": products, "cycles": cycles,
        "cycles with a GEMM of 4 cycles a product": slow, "terms": columns,
    }  # fmt: skip


def _total(
    profile: str,
    workload_of: Callable[[str], Workload],
    counts: Mapping[str, int],
    sums: Mapping[str, int],
) -> Counter[str]:
    """Return the terms of all layers of a profile; [clock]."""
    target = vta("vta-pynq", VtaConfig(profile=profile)).target
    found: Counter[str] = Counter()
    for name, count in counts.items():
        ends = min(sums.get(name, 0), count)
        for residual, times in ((0, count - ends), (1, ends)):
            if times:
                report = _report(workload_of(name), target, residual)
                for term, cycles in terms_of(report).items():
                    found[term] += times * cycles
    return found


def _report(workload: Workload, target: Target, residual: int) -> AcceleratorReport:
    """Simulate the default config of a layer with biases, and perhaps a residual."""
    item = operator(workload.op)
    whole = Workload.of(workload.op, **{**workload.as_dict(), "bias": 1, "residual": residual})
    schedule, args = item.template(whole, target, item.default_config(whole, target))
    kernel = build(schedule, args, target)
    assert isinstance(kernel, AcceleratorKernel)
    return kernel.report()


def terms_of(report: AcceleratorReport, engine: str = "compute") -> Counter[str]:
    """Return what takes the cycles of an engine; the terms add up to those of the report; [clock].

    Parameters
    ----------
    report
        Of a program.
    engine
        The engine that ends the program.
    """
    found: Counter[str] = Counter()
    for run in report.runs:
        steps = run.of(engine)
        for number in steps[:-1]:
            found[_term(run, run.program.steps[number])] += int(run.end[number] - run.start[number])
        for number in steps:
            wait = run.wait(number)
            found[_WAITS.get(wait.reason, "accepts instructions")] += wait.cycles
        found["accepts instructions"] += run.cycles - int(
            sum(run.end[n] - run.start[n] for n in steps[:-1])
            + sum(run.wait(n).cycles for n in steps)
        )
    return found


def _term(run: TimedRun, step: Step) -> str:
    """Return what an instruction does, in words."""
    fields = operand_fields(run.program.accelerator, step.instruction)
    values = dict(zip(fields, step.values, strict=True))
    if step.instruction.kind == "tensor":
        return "resets" if values.get("reset") else "products"
    if step.instruction.kind == "elementwise":
        operation = step.instruction.operations[values["operation"]]
        return {"shr": "shifts", "add": "sums of biases and residuals"}.get(operation, "limits")
    return "loads of micro-ops" if step.instruction.memory == "uop" else "loads of accumulators"
