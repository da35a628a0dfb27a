"""Try random reads between guarded pages until the time is over; print what fails.

``python -m tests.fuzz_reads --cases 20000``. Cases run in a child process, which a read outside its
arrays would end: the seed that it was at is then printed. ``--replay SEED`` repeats one case here.
"""

from __future__ import annotations

import argparse
import collections
import subprocess
import sys
import time
import traceback

from tests.fuzz.reads import WAYS, attempt

BATCH = 250


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=20000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--way", choices=WAYS)
    parser.add_argument("--replay", type=int, metavar="SEED")
    parser.add_argument("--batch", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.replay is not None:
        print(attempt(options.replay, options.way))
        return 0
    if options.batch is not None:
        return try_batch(options.first, options.batch, options.way)
    counts: collections.Counter[str] = collections.Counter()
    start, seed, end = time.monotonic(), options.first, options.first + options.cases
    while seed < end and time.monotonic() - start < options.seconds:
        seed, outcomes = run_batch(seed, min(BATCH, end - seed), options.way)
        counts.update(outcomes)
        print(f"{time.strftime('%H:%M:%S')} to seed {seed - 1}: {dict(counts)}", flush=True)
    return 1 if counts["failed"] or counts["crashed"] else 0


def run_batch(first: int, count: int, way: str | None = None) -> tuple[int, list[str]]:
    """Try cases in a child; return the seed to go on at, and the outcomes."""
    command = [sys.executable, "-m", "tests.fuzz_reads", "--first", str(first)]
    command += ["--batch", str(count), *(["--way", way] if way else [])]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = child.stdout.splitlines()
    outcomes = [line.split()[1] for line in lines if line.startswith("case ")]
    begun = [int(line.split()[1]) for line in lines if line.startswith("begin ")]
    for line in lines:
        if not line.startswith(("case ", "begin ")):
            print(line)
    if len(begun) > len(outcomes):
        print(f"seed {begun[-1]} ended the process: status {child.returncode}\n{child.stderr}")
        outcomes.append("crashed")
        return begun[-1] + 1, outcomes
    if child.returncode:
        raise SystemExit(child.stderr)
    return first + count, outcomes


def try_batch(first: int, count: int, way: str | None) -> int:
    for seed in range(first, first + count):
        print("begin", seed, flush=True)
        try:
            outcome = attempt(seed, way)
        except Exception:
            print(f"seed {seed} failed:\n{traceback.format_exc()}")
            outcome = "failed"
        print("case", outcome, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
