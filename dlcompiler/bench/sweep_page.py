"""The page of sweeps: ratios by family, and why the slow works are slow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dlcompiler.bench.sweep import BELOW
from dlcompiler.runtime.timing import format_seconds

REASONS: tuple[tuple[str, str], ...] = (
    (r"^(gemm|dense|batch_matmul|conv2d):.*dtype=bfloat16", "PyTorch multiplies bfloat16 in "
     "tiles (AMX); ours converts to float32, which keeps subnormal numbers"),
    (r"^(gemm|dense|batch_matmul|conv2d):.*dtype=int8", "PyTorch multiplies int8 in tiles (AMX); "
     "ours adds four products at a time (VNNI)"),
    (r"^batch_matmul:\d+x(\d|1\d)x\d+x", "few rows: the sums of a matrix fill few registers"),
    (r"^gemm:(\d|1\d)x", "few rows: B is read once, at the speed of the caches"),
    (r"^resize2d:", "the elements of a row are gathered, one load for each"),
    (r"^cumsum:", "each line adds to the one before it"),
    (r"^log_softmax:|^softmax:", "a logarithm or a division for each short row"),
    (r"^pool2d:", "the image is copied into its frame first"),
    (r"^elementwise:", "a function of many steps for each element"),
)  # fmt: skip
"""A pattern of works -> what limits them on the machine that was measured."""


def reason_for(work: str) -> str:
    """Return what limits a work.

    Examples
    --------
    >>> reason_for("cumsum:4x8,axis=0"), reason_for("flip:4x8")
    ('each line adds to the one before it', 'not known')
    """
    return next((text for pattern, text in REASONS if re.search(pattern, work)), "not known")


def sweep_page(documents: Sequence[Mapping[str, Any]]) -> str:
    """Return a Markdown page of sweeps of the same works with other numbers of threads."""
    return "\n".join(_lines(documents)) + "\n"


def _lines(documents: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    first = documents[0]
    yield from (
        "# A thousand works",
        "",
        f"Written by `make sweep`: {first['count']:,} works of all operators, shaped as layers of",
        "models, with default schedules ([how](BENCHMARKING.md#the-sweep)). The ratio is the best",
        "peer's time divided by ours: above 1, ours is faster.",
        "",
        f"- date: {first['date']}",
    )
    yield from (f"- {name}: {value}" for name, value in first["machine"].items())
    peers = ", ".join(f"{name} {version}" for name, version in first["peer_versions"].items())
    yield from (f"- peers: {peers}", "", *_families(documents))
    for document in documents:
        yield from _slow(document)


def _families(documents: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the table of geometric means."""
    names = [threads_text(document) for document in documents]
    yield f"| family | works | {' | '.join(names)} |"
    yield "|---" * (2 + len(names)) + "|"
    for family, count in sorted(documents[0]["counts"].items()):
        means = [_number(document["families"].get(family)) for document in documents]
        yield f"| {family} | {count} | {' | '.join(means)} |"
    total = sum(documents[0]["counts"].values())
    means = [_number(document["geometric_mean"]) for document in documents]
    yield f"| **all** | {total} | {' | '.join(means)} |"
    below = [str(len(document["below"])) for document in documents]
    yield f"| works below {BELOW} | | {' | '.join(below)} |"
    yield ""


def threads_text(document: Mapping[str, Any]) -> str:
    """Return the number of threads of a sweep in words."""
    threads = document["threads"]
    return "1 thread" if threads == 1 else f"{threads} threads"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _slow(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the works below the limit, with their roofline."""
    yield f"## Below {BELOW} with {threads_text(document)}"
    yield ""
    yield "Measured twice; the larger ratio counts. The bound is the time of the operations at the"
    yield "FMA peak of float32, or of the bytes at the bandwidth of the memory."
    yield ""
    yield "| ratio | work | best peer | ours | of the bound | what limits it |"
    yield "|---|---|---|---|---|---|"
    for row in document["below"]:
        work = row["work"].replace("|", "\\|")
        yield (
            f"| {row['ratio']:.2f} | `{work}` | {row['best_peer']} "
            f"| {format_seconds(row['ours_seconds'])} | {row['of_bound']:.0%} "
            f"| {reason_for(row['work'])} |"
        )
    yield ""
    for work, reason in document["failed"].items():
        yield f"`{work}` failed: {reason}"
        yield ""
