"""Measured models as documents: JSON values, and text for people."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from typing import Any

from dlcompiler.bench.machine import describe_system
from dlcompiler.bench.models import BuiltModel, ImportedModel, ModelResult, Settings
from dlcompiler.bench.peers import versions
from dlcompiler.runtime.timing import Timing, format_ratio, format_seconds
from dlcompiler.views.render.boxes import count
from dlcompiler.views.render.units import format_bytes

SCHEMA_VERSION = 1
_LABEL = 14


def document_of(
    given: ImportedModel, made: BuiltModel, result: ModelResult, settings: Settings
) -> dict[str, Any]:
    """Return a measured model as JSON values; times in seconds."""
    model = made.model
    return {
        "version": SCHEMA_VERSION,
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "model": given.path,
        "threads": settings.threads,
        "machine": describe_system(),
        "peer_versions": versions(settings.peers),
        "inputs": [each.to_json() for each in given.inputs],
        "import_seconds": given.import_s,
        "build_seconds": made.build_s,
        "weight_bytes": model.weight_bytes,
        "arena_bytes": model.plan.bytes,
        **result.to_json(),
    }


def summary(
    given: ImportedModel, made: BuiltModel, result: ModelResult, settings: Settings
) -> Iterator[str]:
    """Yield lines that say what was measured."""
    model = made.model
    yield _line("model", given.path)
    for each in given.inputs:
        yield _line("input", str(each))
    yield _line(
        "built",
        f"{count(len(model.steps), 'kernel')} in {format_seconds(made.build_s)}, imported in "
        f"{format_seconds(given.import_s)}; weights {format_bytes(model.weight_bytes)}, "
        f"arena {format_bytes(model.plan.bytes)}",
    )
    yield from results_text(result, settings.threads)


def _verified(result: ModelResult) -> str:
    if result.verified is None:
        return f"not verified: {result.reason}"
    if not result.verified:
        return f"no: {result.reason}"
    tolerance = "equal" if result.tolerance is None else f"tolerance {result.tolerance:g}"
    names = " and ".join(result.references)
    text = f"yes, compared with {names}: largest relative error {result.error:.2g}, {tolerance}"
    return f"{text}; {result.reason}" if result.reason else text


def results_text(result: ModelResult, threads: int) -> Iterator[str]:
    """Yield lines: whether it is verified, our time, and each peer with the ratio to ours."""
    yield _line("verified", _verified(result))
    for name, reason in result.absent.items():
        yield _line(name, reason)
    if result.ours is None:
        return
    on = count(threads, "thread")
    yield _line("ours", f"{_time(result.ours)}, {on}, {count(result.ours.n, 'round')}")
    for name, peer in result.peers.items():
        ratio = peer.ratio
        yield _line(
            name,
            f"{_time(peer.timing)}: {format_ratio(ratio.median)} ours "
            f"({format_ratio(ratio.low)} to {format_ratio(ratio.high)})",
        )


def _time(timing: Timing) -> str:
    return f"{format_seconds(timing.median_s)} ±{format_seconds(timing.spread_s)}"


def _line(label: str, text: str) -> str:
    return f"{label:<{_LABEL}}{text}"


def tuned_line(row: Mapping[str, Any]) -> str:
    """Return a tuned workload in one line, by the first kernel that computes it."""
    best, default = row["best_seconds"], row["default_seconds"]
    first, *others = row["kernels"]
    names = f"{first} and {count(len(others), 'other')}" if others else first
    found = "no config could be measured"
    if best is not None:
        found = f"best {format_seconds(best)}"
        found += "" if default is None else f", the default {format_seconds(default)}"
    return f"tuned {names}: {count(row['trials'], 'trial')}, {found}"
