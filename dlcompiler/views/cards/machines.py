"""Cards of targets, kernels, timings and verified results."""

from __future__ import annotations

import math

from dlcompiler.measurement.equality import error_text
from dlcompiler.measurement.verification import Verified
from dlcompiler.pipeline import CKernel, Kernel
from dlcompiler.runtime.function import Function
from dlcompiler.runtime.timing import Paired, Timing, format_rate, format_ratio, format_seconds
from dlcompiler.target import Target
from dlcompiler.views.cards.card import Card, card, card_html
from dlcompiler.views.render.colors import HUES
from dlcompiler.views.render.html import func_html
from dlcompiler.views.render.markup import Markup, tag
from dlcompiler.views.render.scene import Cell, Mark, Scene, Table
from dlcompiler.views.render.units import format_bytes, format_count

_LARGEST_PROGRAM_BYTES = 40_000
_NAMES_PX, _BARS_PX, _ROW_PX = 130.0, 300.0, 26.0


def target_html(target: Target) -> Markup:
    """Return the card of a target: its vectors, caches and memory scopes."""
    return card_html(target_card(target))


def timing_html(timing: Timing) -> Markup:
    """Return the card of a timing: the median, its spread, and every sample."""
    return card_html(timing_card(timing))


def paired_html(paired: Paired) -> Markup:
    """Return the card of two times that were measured in alternation."""
    return card_html(paired_card(paired))


def verified_html(verified: Verified) -> Markup:
    """Return the card of a verification: what the result was compared with."""
    return card_html(verified_card(verified))


def function_html(function: Function) -> Markup:
    """Return the card of a kernel: its signature, and how to see its code."""
    shown = card_html(function_card(function))
    if not isinstance(function, Kernel):
        return shown
    program = func_html(function.func)
    if len(program.encode()) > _LARGEST_PROGRAM_BYTES:
        return shown
    summary = tag("summary", {"style": "cursor:pointer;font-size:12px"}, "Its loop IR")
    return tag("div", None, shown, tag("details", None, summary, program))


# -- machines ------------------------------------------------------------------------------------


def target_card(target: Target) -> Card:
    """Return the card of a target."""
    vectors = (
        f"{target.vector_extension}: {target.vector_registers} registers of {target.vector_bits} "
        f"bit, {target.lanes('float32')} lanes of float32"
    )
    caches: Table = {
        "columns": ["cache", "size", "line", "shared by"],
        "rows": [
            [level.name, format_bytes(level.bytes), format_bytes(level.line),
             _count(level.shared_by, _core_of(target))]
            for level in target.caches
        ],
    }  # fmt: skip
    scopes: Table = {
        "columns": ["memory scope", "capacity of a buffer", "alignment", "used by"],
        "rows": [
            [scope.name, "not limited" if scope.capacity is None else format_bytes(scope.capacity),
             format_bytes(scope.alignment), ", ".join(scope.accessible_by)]
            for scope in target.scopes
        ],
    }  # fmt: skip
    return card(
        target.name,
        f"a {target.device} with {_count(target.cores, _core_of(target))}",
        facts=[
            ("language", target.language),
            ("processor", f"{target.cpu}, {target.triple}" if target.cpu else "any"),
            ("vectors", vectors),
            ("features", ", ".join(target.features)),
            ("limits", ", ".join(f"{name} {value:,}" for name, value in target.limits.items())),
        ],
        scene=caches_scene(target) if target.caches else None,
        tables=[
            (caption, table)
            for caption, table in (("Data caches, nearest first", caches),
                                   ("Where buffers may live", scopes))
            if table["rows"]
        ],
    )  # fmt: skip


def _core_of(target: Target) -> str:
    return "multiprocessor" if target.thread_axes else "core"


def caches_scene(target: Target) -> Scene:
    """Return the levels of memory of a target as bars on a log2 scale.

    Parameters
    ----------
    target
        The machine, with at least one cache.
    """
    registers = target.vector_registers * target.vector_bits // 8
    levels = [("vector registers", registers, HUES[1])]
    levels += [(level.name, level.bytes, HUES[0]) for level in target.caches]
    largest = max(math.log2(max(size, 2)) for _, size, _ in levels)
    marks: list[Mark] = []
    for n, (name, size, fill) in enumerate(levels):
        y = n * _ROW_PX + 2
        width = _BARS_PX * math.log2(max(size, 2)) / largest
        marks += [
            {"shape": "text", "role": "label", "x": 2, "y": y + 15, "text": name},
            {"shape": "rect", "role": "bar", "x": _NAMES_PX, "y": y, "w": width, "h": 20,
             "fill": fill, "title": f"{name}: {format_bytes(size)}"},
            {"shape": "text", "role": "label", "x": _NAMES_PX + width + 6, "y": y + 15,
             "text": format_bytes(size)},
        ]  # fmt: skip
    rows: list[list[Cell]] = [[name, size] for name, size, _ in levels]
    words = ", ".join(f"{name} {format_bytes(size)}" for name, size, _ in levels)
    return {
        "title": f"Memory of {target.name}",
        "summary": f"From the nearest: {words}.",
        "how_to_read": "a bar is a level of memory, the nearest one at the top. Lengths are on a "
        "log2 scale: an equal step is twice as much.",
        "width": _NAMES_PX + _BARS_PX + 80,
        "height": len(levels) * _ROW_PX + 4,
        "marks": marks,
        "table": {"columns": ["level", "bytes"], "rows": rows},
    }


# -- what was measured and compared ----------------------------------------------------------------


def timing_card(timing: Timing) -> Card:
    """Return the card of a timing: the median, its spread, its rate and its samples."""
    text = _median(timing)
    rate = None if timing.gflops is None else f"{format_rate(timing.gflops)} GFLOP/s at the median"
    samples = _count(timing.n, "sample")
    if timing.batch > 1:
        samples += f", each the mean of {timing.batch:,} calls"
    return card(
        "Time of a call",
        text,
        facts=[
            ("rate", rate),
            ("samples", samples),
            *((name, _median(copy)) for name, copy in timing.copies),
            ("±", "half of the range between the quartiles: half of the samples lie within"),
        ],
        scene=samples_scene(timing) if timing.n > 1 else None,
    )


def _median(timing: Timing) -> str:
    median, spread = format_seconds(timing.median_s), format_seconds(timing.spread_s)
    return f"{median} ± {spread}, {timing.label}"


def samples_scene(timing: Timing) -> Scene:
    """Return the samples of a timing as ticks along a line, the median among them.

    Parameters
    ----------
    timing
        With at least two samples.
    """
    low, high = min(timing.samples_s), max(timing.samples_s)
    span = (high - low) or 1.0
    left, width, line = 12.0, 400.0, 34.0

    def place(seconds: float) -> float:
        return left + (seconds - low) / span * width if high > low else left + width / 2

    middle = place(timing.median_s)
    samples: list[Mark] = [
        {"shape": "circle", "role": "node", "x": place(s), "y": line, "r": 4, "fill": HUES[0],
         "title": f"sample {n}: {format_seconds(s)}"}
        for n, s in enumerate(timing.samples_s, start=1)
    ]  # fmt: skip
    marks: list[Mark] = [
        {"shape": "line", "role": "axis", "x": left, "y": line, "x2": left + width, "y2": line},
        *samples,
        {"shape": "line", "role": "warn", "x": middle, "y": line - 14, "x2": middle,
         "y2": line + 8},
        {"shape": "text", "role": "name", "x": min(max(middle, 80.0), left + width - 68),
         "y": 14, "text": f"median {format_seconds(timing.median_s)}", "anchor": "middle"},
        {"shape": "text", "role": "soft", "x": left - 8, "y": line + 24,
         "text": format_seconds(low)},
        {"shape": "text", "role": "soft", "x": left + width + 8, "y": line + 24,
         "text": format_seconds(high), "anchor": "end"},
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [n, format_seconds(s)] for n, s in enumerate(timing.samples_s, start=1)
    ]
    return {
        "title": "Samples",
        "summary": f"{timing.n} samples between {format_seconds(low)} and {format_seconds(high)}, "
        f"{timing.label}.",
        "how_to_read": "a dot is a sample, seconds of one call from left to right; the upright "
        "line is the median.",
        "width": left + width + 20,
        "height": line + 32,
        "marks": marks,
        "table": {"columns": ["sample", "time"], "rows": rows},
    }


def paired_card(paired: Paired) -> Card:
    """Return the card of two times that were measured in alternation, with their ratio."""
    rows: list[list[Cell]] = [
        [name, format_seconds(t.median_s), format_seconds(t.spread_s), t.n,
         "" if t.gflops is None else format_rate(t.gflops)]
        for name, t in (("a", paired.a), ("b", paired.b))
    ]  # fmt: skip
    faster = "b is the faster one" if paired.ratio > 1 else "a is the faster one"
    table: Table = {"columns": ["", "median", "±", "samples", "GFLOP/s"], "rows": rows}
    return card(
        "Two times, measured in alternation",
        f"a takes {format_ratio(paired.ratio)} (± {paired.ratio_spread:.2g}) the time of b: "
        f"{faster}. This is the median of the ratios of all rounds, not the quotient of the "
        "medians below",
        tables=[("Measured on this machine", table)],
    )


def verified_card(verified: Verified) -> Card:
    """Return the card of a verification: the oracles, and the largest error."""
    shape = " × ".join(map(str, verified.shape)) or "one element"
    return card(
        "Verified",
        f"the result is right, by {' and '.join(verified.oracles)}",
        tone="good",
        facts=[
            ("output", shape),
            ("inputs", f"{', '.join(verified.inputs)}; of seed {verified.seed}"),
            *((("indices", "; ".join(verified.indices)),) if verified.indices else ()),
            ("difference", f"{error_text(verified.worst)}, which is what rounding may do"),
        ],
    )


# -- kernels ---------------------------------------------------------------------------------------


def function_card(function: Function) -> Card:
    """Return the card of a kernel: its signature, its target, and how to see its code."""
    parameters: Table = {
        "columns": ["argument", "type", "role"],
        "rows": [_parameter(str(p), p.is_output, p.is_number) for p in function.params],
    }
    code: list[list[Cell]] = [["llvm_ir", "LLVM IR after its optimisation"],
                              ["source()", "LLVM IR as it was generated"],
                              ["assembly", "machine code as text"]]  # fmt: skip
    if isinstance(function, CKernel):
        code = [["source()", "C, to be compiled alone"], ["header", "what its callers include"]]
    facts: list[tuple[str, str | None]] = []
    if isinstance(function, Kernel):
        code.insert(0, ["func", "loop IR, the last one before the code"])
        work = function.work
        facts.append(("target", repr(function.target)))
        if work is not None and work.flops:
            facts.append(("work", f"{format_count(work.flops)} floating-point operations, exact"))
    facts.append(("threads", "has parallel loops" if function.uses_threads else "runs on one core"))
    return card(
        f"{function.name}({', '.join(param.name for param in function.params)})",
        "a kernel: call it with NumPy arrays, outputs last",
        facts=facts,
        tables=[
            ("Arguments", parameters),
            ("Its code, as attributes", {"columns": ["attribute", "what"], "rows": code}),
        ],
    )


def _parameter(text: str, is_output: bool, is_number: bool) -> list[Cell]:
    name, _, type_ = text.partition(": ")
    return [name, type_, "output" if is_output else "number" if is_number else "input"]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
