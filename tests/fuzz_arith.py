"""Simplify random expressions of each integer family; print what fails.

``python -m tests.fuzz_arith --count 100000 --seed 1`` tries so many expressions of each family;
``--case index:1:17`` repeats one.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback

from tests.arith.random_expressions import FAMILIES, check, names, random_case, shrunk


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--family", choices=sorted(FAMILIES))
    parser.add_argument("--case", help="one case, such as index:1:17")
    options = parser.parse_args()
    if options.case:
        return 1 if report(options.case) else 0
    failures = 0
    for family in [options.family] if options.family else FAMILIES:
        begin = time.monotonic()
        failed = sum(report(name) for name in names(family, options.seed, options.count))
        seconds = time.monotonic() - begin
        print(
            f"{family}: seed {options.seed}, {options.count} expressions, {failed} failures, "
            f"{seconds:.0f} s",
            flush=True,
        )
        failures += failed
    return 1 if failures else 0


def report(name: str) -> bool:
    """Check a case; print what is wrong and tell whether something is."""
    try:
        check(random_case(name))
    except Exception:
        case = shrunk(random_case(name))
        print(f"== {case}", flush=True)
        try:
            check(case)
        except Exception:
            print(traceback.format_exc(limit=-4), flush=True)
        return True
    return False


if __name__ == "__main__":
    sys.exit(main())
