"""Build random programs for accelerators and run them in many orders of the engines.

``python -m tests.fuzz_accelerators --count 2000``. ``--replay SEED`` shows one program and repeats
it; ``--refused`` prints why programs are refused, each reason with a seed.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import traceback
from collections import Counter

import dlcompiler as dlc
from tests.codegen.accelerator import random_machines, random_programs
from tests.codegen.accelerator.random_programs import check


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--orders", type=int, default=20, help="orders of the engines")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--replay", type=int, metavar="SEED")
    parser.add_argument("--refused", action="store_true")
    options = parser.parse_args()
    if options.replay is not None:
        return _replay(options.replay, options.orders)
    start, failed, refused, seeds = time.monotonic(), 0, Counter[str](), {}
    seed = options.first
    while seed < options.first + options.count and time.monotonic() - start < options.seconds:
        try:
            if reason := check(seed, options.orders, case(seed)):
                problem = _problem(reason)
                refused[problem] += 1
                seeds.setdefault(problem, seed)
        except Exception:
            failed += 1
            print(f"seed {seed} failed:\n{traceback.format_exc()}", flush=True)
        seed += 1
    done = seed - options.first
    total = sum(refused.values())
    print(f"{done} programs in {options.orders + 1} orders: {failed} failed, {total} refused")
    if options.refused:
        for problem, count in refused.most_common():
            print(f"{count:6}  {problem}  (seed {seeds[problem]})")
    return 1 if failed else 0


def case(seed: int) -> random_programs.Case:
    """Return the program of a seed: three of four for a VTA, the others for other machines."""
    return (random_programs if seed % 4 else random_machines).case(seed)


def _replay(seed: int, orders: int) -> int:
    made = case(seed)
    args = [*made.inputs, *made.outputs]
    print("; ".join(made.steps))
    print(dlc.lower(made.schedule, args, target=made.machine.target))
    print(check(seed, orders, made) or "equal")
    return 0


def _problem(reason: str) -> str:
    """Return the first line of a message without its names and numbers."""
    first = reason.partition("\n")[0]
    return re.sub(r"\b\w*\d[\w.]*", "…", first)


if __name__ == "__main__":
    sys.exit(main())
