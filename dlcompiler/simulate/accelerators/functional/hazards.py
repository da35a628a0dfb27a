"""Known faults of the hardware of a profile: programs that compute something else on it.

**Source:** measured on the RTL of 2019 and 2021 (docs/VTA.md): "Traps".
"""

from __future__ import annotations

import numpy as np

from dlcompiler.simulate.accelerators.functional.findings import Findings
from dlcompiler.simulate.accelerators.functional.micro_ops import Grid
from dlcompiler.simulate.accelerators.functional.transfers import Block
from dlcompiler.simulate.accelerators.timing.profile_2019 import BURST_BEATS
from dlcompiler.simulate.accelerators.work import Work
from dlcompiler.target.accelerators import Accelerator

_HINTS = "profile B computes it as intended"


def check_load(
    accelerator: Accelerator, work: Work, block: Block, step: int, findings: Findings
) -> None:
    """Report a load that the hardware does in another way."""
    if accelerator.profile != "A" or work.instruction.kind != "load":
        return
    bus = accelerator.port.bytes_per_cycle
    fields = work.fields
    beats = block.columns * -(-block.element_bytes // bus)
    if beats > BURST_BEATS and (fields.get("x_pad_0") or fields.get("x_pad_1")):
        findings.report(
            "hazard", "split row: the hardware repeats the zeros at its sides in each burst", step,
            got=f"a row of {beats} beats", expected=f"at most {BURST_BEATS} beats in a padded row",
            hint="load the row in pieces, or pad in another way",
        )  # fmt: skip
    if work.instruction.memory == "uop":
        _check_micro_ops(work, block, bus, step, findings)


def _check_micro_ops(work: Work, block: Block, bus: int, step: int, findings: Findings) -> None:
    if block.rows > 1:
        findings.report(
            "hazard", "rows of micro-ops: the hardware loads only the first one", step,
            got=f"{block.rows} rows", expected="1 row",
        )  # fmt: skip
    per_beat = max(bus // block.element_bytes, 1)
    for name in ("sram_base", "dram_base"):
        if work.fields[name] % per_beat:
            findings.report(
                "hazard", f"odd micro-ops: the hardware loads {per_beat} at a time", step,
                got=f"{name}={work.fields[name]}", expected=f"a multiple of {per_beat}",
            )  # fmt: skip


def unknown_micro_ops(work: Work, block: Block, bus: int) -> slice:
    """Return the micro-ops of which nobody knows what they are after a load by profile A.

    Micro-ops come by beats. The last beat brings what follows the list in DRAM, too, and it is not
    read at all if it is a single one after full bursts.
    """
    per_beat = max(bus // block.element_bytes, 1)
    beats = -(-block.columns // per_beat)
    first = block.memory.start
    is_lost = beats > BURST_BEATS and beats % BURST_BEATS == 1
    start = first + (beats - 1) * per_beat if is_lost else block.memory.stop
    return slice(start, first + beats * per_beat)


def check_tensor(
    accelerator: Accelerator, work: Work, grid: Grid, step: int, findings: Findings
) -> None:
    """Report a GEMM of which the hardware loses updates."""
    if accelerator.profile != "A" or work.fields.get("reset"):
        return
    if len(grid.order) == 1:
        findings.report(
            "hazard", "one update: the hardware ends the GEMM before its result is written", step,
            expected="at least 2 updates", hint=_HINTS,
        )  # fmt: skip
    elif grid.runs_of_equal:
        results = next(iter(grid.elements.values()))
        at = int(np.argmax(results[1:] == results[:-1]))
        findings.report(
            "hazard", "consecutive updates of one accumulator: the hardware loses the first", step,
            got=f"updates {at} and {at + 1} of accumulator {int(results[at])}",
            hint=f"put another update between them; {_HINTS}",
        )  # fmt: skip


def check_elementwise(
    accelerator: Accelerator, work: Work, grid: Grid, step: int, findings: Findings
) -> None:
    """Report an ALU instruction that the hardware runs in another way."""
    fields = work.fields
    if not accelerator.profile or not fields.get("use_imm"):
        return
    operation = work.instruction.operations[fields["operation"]]
    if accelerator.profile == "A":
        if operation in ("min", "max") and fields["imm"] < 0:
            findings.report(
                "hazard", f"{operation} with a negative immediate: the hardware takes it for a"
                " large positive one", step, got=f"imm={fields['imm']}", expected="0 or more",
                hint=_HINTS,
            )  # fmt: skip
        return
    target, source = list(grid.elements.values())
    if (target != source).any():
        findings.report(
            "hazard", "an immediate with a source: the hardware reads the source, not the result",
            step, expected="the source of each update is its result",
        )  # fmt: skip
    if grid.runs_of_equal:
        findings.report(
            "hazard", "consecutive updates of one accumulator: the hardware stops", step,
            expected="no two updates of one accumulator after one another",
        )  # fmt: skip
