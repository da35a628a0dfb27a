"""The suite ``sweep``: many works of all families, shaped as in models, with default schedules.

Each family has the layers of `dlcompiler.bench.sweep_layers` in random order, first as they stand,
then with random variations of their sizes. The families take turns, so that any number of works is
spread evenly. The document is written after each work: a second start goes on where it stopped.
A work whose ratio is small is measured a second time, because other programs disturb short times.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dlcompiler.bench.contest import Bench, Settings
from dlcompiler.bench.document import head, read_json
from dlcompiler.bench.machine import memory_bandwidth
from dlcompiler.bench.page import heading, line
from dlcompiler.bench.results import Result
from dlcompiler.bench.sweep_layers import LAYERS
from dlcompiler.bench.works import GRAMMAR, Work, parse_work
from dlcompiler.errors import UserError

COMPARED = tuple(name for name, family in GRAMMAR.items() if family.has_peers)
"""Families that other libraries compute, too."""
COUNT = 1000
"""Works of a sweep, if no other number is given."""
BELOW = 0.8
"""Ratios below this are listed."""
LIMITS = {"budget_s": 0.2, "rounds": (5, 51)}
"""Arguments of `alternate`: a sweep has many works, so each gets little time."""
_LEAST_FLOPS, _MOST_FLOPS = 1e3, 2.0e9
_MOST_ELEMENTS = 1 << 23
_ATTEMPTS = 1000


def works_of(count: int, seed: int) -> tuple[Work, ...]:
    """Return the first works of the sweep of a seed.

    Parameters
    ----------
    count : int
        Number of works.
    seed : int
        Equal seeds give equal works; fewer of them are the first ones.

    Examples
    --------
    >>> works_of(20, seed=1)[:16] == works_of(16, seed=1)
    True
    >>> len({work.family for work in works_of(16, seed=1)})
    16
    """
    if count < 1:
        raise UserError("bench --suite sweep", "not a number of works", got=repr(count))
    found: list[Work] = []
    sources = {family: _works(family, seed) for family in COMPARED}
    while len(found) < count and sources:
        for family in list(sources):
            work = next(sources[family], None)
            if work is None:
                del sources[family]
            elif len(found) < count:
                found.append(work)
    return tuple(found)


def _works(family: str, seed: int) -> Iterator[Work]:
    """Yield different works of a family: its layers, then variations of them."""
    layers = [text for texts in LAYERS.values() for text in texts if text.startswith(f"{family}:")]
    generator = random.Random(f"{family} {seed}")
    seen: set[str] = set()
    generator.shuffle(layers)
    for layer in layers:
        work = parse_work(layer.replace("{", "").replace("}", ""))
        if work.text not in seen:
            seen.add(work.text)
            yield work
    failures = 0
    while layers and failures < _ATTEMPTS:
        varied = _varied(generator.choice(layers), generator)
        failures += 1
        if varied is not None and varied.text not in seen and _is_of_ordinary_size(varied):
            failures = 0
            seen.add(varied.text)
            yield varied


def _varied(layer: str, generator: random.Random) -> Work | None:
    """Return a layer with other numbers in its braces; None if they do not fit together."""
    drawn: dict[str, str] = {}

    def draw(found: re.Match[str]) -> str:
        return drawn.setdefault(found[1], str(_near(int(found[1]), generator)))

    try:
        return parse_work(re.sub(r"\{(\d+)\}", draw, layer))
    except UserError:
        return None


def _near(number: int, generator: random.Random) -> int:
    """Draw a number near another: as it is, a little off, or up to four times as large or small."""
    if number == 1:  # of images or tokens
        return generator.choice((1, 1, 1, 2, 3, 4, 8))
    kind = generator.random()
    if kind < 0.3:
        return number
    if kind < 0.5:
        return max(1, number + generator.choice((-3, -1, 1, 2)))
    other = max(1, round(number * 2 ** generator.uniform(-2, 1)))
    return other - other % 8 if other >= 16 and generator.random() < 0.6 else other


def _is_of_ordinary_size(work: Work) -> bool:
    elements = max(math.prod(shape) for shape in work.shapes.values())
    return elements <= _MOST_ELEMENTS and (
        not GRAMMAR[work.family].fuses or _LEAST_FLOPS <= work.flops <= _MOST_FLOPS
    )


# -- the measurement ------------------------------------------------------------------------------


def run_suite(
    say: Callable[[str], None],
    settings: Settings,
    *,
    count: int,
    seed: int,
    machine: Mapping[str, str],
    before: Mapping[str, Any] | None = None,
    keep: Callable[[dict[str, Any]], None] = lambda document: None,
) -> dict[str, Any]:
    """Measure the works of a sweep that are not measured yet; return the document.

    Parameters
    ----------
    say
        Called with each row as soon as it is there.
    settings
        How the works are measured.
    count, seed
        See `works_of`.
    machine
        A description of the machine, for the document.
    before
        The document of a sweep that stopped: its results are kept.
    keep
        Called with the document after each work.

    Raises
    ------
    UserError
        `before` was measured in another way, so that its results are not comparable.
    """
    document = {
        **head(settings), "suite": "sweep", "seed": seed, "count": count, "machine": dict(machine),
    }  # fmt: skip
    rows: list[dict[str, Any]] = []
    if before is not None:
        check_same(before, document)
        rows = list(before["results"])
    bandwidth = memory_bandwidth()
    document["gigabytes_per_second"] = bandwidth
    done = {row["work"] for row in rows}
    say(heading())
    with Bench(settings) as bench:
        for work in works_of(count, seed):
            if work.text in done:
                continue
            rows.append(_measured(bench, work, bandwidth))
            say(line(rows[-1]))
            keep({**document, "results": rows, **summary(rows)})
    document = {**document, "results": rows, **summary(rows)}
    for text in texts_of(document):
        say(text)
    return document


def _measured(bench: Bench, work: Work, bandwidth: float) -> dict[str, Any]:
    """Return the row of a work; a slow one is measured twice, and the larger ratio counts."""
    rows = [_row(bench.measure_row(work, work.judged), bandwidth)]
    if _ratio(rows[0]) < BELOW:
        rows.append(_row(bench.measure_row(work, work.judged), bandwidth))
    best: dict[str, Any] = max(rows, key=_ratio)
    return {**best, "ratios": [row["ratio"] for row in rows]}


def _ratio(row: Mapping[str, Any]) -> float:
    """Return the ratio of a row; infinity if there is none, which is not slow."""
    return math.inf if row["ratio"] is None else float(row["ratio"])


def _row(result: Result, bandwidth: float) -> dict[str, Any]:
    """Return a row with the time of the roofline: products at the peak, or bytes from memory."""
    work = result.work
    known = {name: value for name, value in result.to_json().items() if name != "peer_details"}
    row = {**known, "family": work.family, "flops": work.flops, "bytes": work.nbytes}
    if row["ours_seconds"] is None:
        return row
    by_flops = work.flops / (row["fma_peak_gflops"] * 1e9)
    by_bytes = work.nbytes / (bandwidth * 1e9)
    bound = max(by_flops, by_bytes)
    return {**row, "bound_seconds": bound, "of_bound": bound / row["ours_seconds"]}


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the geometric mean of each family and of all, the slow works, and the failed ones."""
    ratios = {row["work"]: float(row["ratio"]) for row in rows if row["ratio"] is not None}
    of_family: dict[str, list[float]] = {}
    for row in rows:
        if row["work"] in ratios:
            of_family.setdefault(row["family"], []).append(row["ratio"])
    families = {name: _mean(of_family[name]) for name in sorted(of_family)}
    slow = sorted((row for row in rows if _ratio(row) < BELOW), key=_ratio)
    kept = ("work", "ratio", "best_peer", "ours_seconds", "bound_seconds", "of_bound")
    return {
        "families": families,
        "counts": {name: len(found) for name, found in of_family.items()},
        "geometric_mean": _mean(list(ratios.values())),
        "below": [{name: row[name] for name in kept} for row in slow],
        "failed": {row["work"]: row["reason"] for row in rows if row["verified"] is False},
    }


def _mean(ratios: Sequence[float]) -> float | None:
    """Return the geometric mean."""
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) if ratios else None


def texts_of(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a sweep's summary."""
    yield ""
    for name, mean in document["families"].items():
        yield f"{name:<14} {mean:5.2f}  of {document['counts'][name]} works"
    mean = document["geometric_mean"]
    if mean is not None:
        yield f"{'all':<14} {mean:5.2f}"
    yield f"\nbelow {BELOW}: {len(document['below'])} works; fraction of the roofline"
    for row in document["below"]:
        yield (
            f"{row['ratio']:5.2f}  {row['work']:<60} {row['best_peer']:<12} "
            f"{row['of_bound']:6.1%} of {row['bound_seconds'] * 1e6:.1f} µs"
        )


def check_same(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to add works to a sweep that was measured in another way.

    Raises
    ------
    UserError
        The version, seed, number of threads, processor or a peer's version differs.
    """
    for fact in ("version", "seed", "threads", "peer_versions"):
        if before.get(fact) != now[fact]:
            raise _other(fact, before.get(fact), now[fact])
    then, here = (str(d["machine"].get("cpu")).partition(";")[0] for d in (before, now))
    if then != here:
        raise _other("processor", then, here)


def _other(fact: str, then: object, now: object) -> UserError:
    return UserError(
        "bench --save", f"the works of the file were measured with another {fact}", got=str(then),
        expected=str(now), hint="say --overwrite to start anew, or save to another file",
    )  # fmt: skip


def read_sweep(path: Path, operation: str = "bench --save") -> dict[str, Any]:
    """Read the document of a sweep that stopped.

    Raises
    ------
    UserError
        It cannot be read, or is something else.
    """
    document = read_json(path, operation)
    if not isinstance(document, dict) or document.get("suite") != "sweep":
        raise UserError(
            operation, "not a document of a sweep", got=str(path),
            hint="say --overwrite to replace it, or save to another file",
        )  # fmt: skip
    try:
        found = {**document, **summary(document["results"])}
        for _ in texts_of(found):
            pass
        str(document["machine"].get("cpu"))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise UserError(
            operation, "the document is damaged, or of another version",
            got=f"{type(error).__name__}: {error}",
        ) from error  # fmt: skip
    return found
