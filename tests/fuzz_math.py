"""Measure the errors of the functions of machine code on all float32, and print a table.

``python -m tests.fuzz_math --seconds 600`` goes on where the last run in ``--folder`` stopped:
functions of one argument take all 2**32 numbers, `pow` 10**8 pairs. The exit status is 1 if an
error is above the one that `dlcompiler.codegen.llvm.functions` states.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dlcompiler.codegen.llvm.functions import MAX_ULPS
from tests.fuzz.accuracy import CHUNK, Worst, kernel, pairs_near_powers, patterns, worst

STATED = MAX_ULPS["float32"]
UNIT = 2**20
"""Numbers tried between two looks at the clock."""
TOTAL = {name: 10**8 if name == "pow" else 2**32 for name in STATED}
TARGETS = ("cpu", "x86-64-sse2")


@dataclass(frozen=True)
class Progress:
    """What was tried of a function."""

    tried: int
    worst: Worst


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz-math"))
    parser.add_argument("--functions", default=",".join(STATED))
    parser.add_argument("--target", choices=TARGETS, default="cpu")
    options = parser.parse_args()
    names = options.functions.split(",")
    file = options.folder / f"{options.target}.json"
    options.folder.mkdir(parents=True, exist_ok=True)
    states = {**dict.fromkeys(STATED, Progress(0, Worst())), **_read(file)}
    end = time.monotonic() + options.seconds
    for name in names:
        for progress in _steps(name, states[name], options.target):
            states[name] = progress
            _write(file, states)
            if time.monotonic() > end:
                break
    print(table({name: states[name] for name in names}))
    return int(any(states[name].worst.ulps > STATED[name] for name in names))


def _steps(name: str, progress: Progress, target: str) -> Iterator[Progress]:
    """Try the rest of a function's numbers, unit by unit."""
    compute = kernel(name, CHUNK, target=target)
    for start in range(progress.tried, TOTAL[name], UNIT):
        count = min(UNIT, TOTAL[name] - start)
        is_pow = name == "pow"
        arguments = pairs_near_powers(start, count) if is_pow else (patterns(start, count),)
        found = worst(name, compute, *arguments)
        progress = Progress(start + count, progress.worst.or_worse(found))
        yield progress


def table(states: dict[str, Progress]) -> str:
    """Return what was found, a line for each function."""
    lines = [f"{'function':9} {'tried':>7} {'stated':>7} {'largest':>8}  at"]
    for name, progress in states.items():
        share = progress.tried / TOTAL[name]
        at = ", ".join(map(repr, progress.worst.at))
        mark = "" if progress.worst.ulps <= STATED[name] else "  TOO LARGE"
        lines.append(
            f"{name:9} {share:7.1%} {STATED[name]:7.3f} {progress.worst.ulps:8.4f}  {at}{mark}"
        )
    return "\n".join(lines)


def _read(file: Path) -> dict[str, Progress]:
    found = json.loads(file.read_text()) if file.exists() else {}
    return {
        name: Progress(tried, Worst(ulps, tuple(at))) for name, (tried, ulps, at) in found.items()
    }


def _write(file: Path, states: dict[str, Progress]) -> None:
    content = {name: (p.tried, p.worst.ulps, p.worst.at) for name, p in states.items()}
    new = file.with_suffix(".new")
    new.write_text(json.dumps(content))
    os.replace(new, file)


if __name__ == "__main__":
    sys.exit(main())
