"""Make mistakes in the compiler on purpose, and see whether the checks notice.

Each mutant is a small change of lowering, legality, passes, arithmetic or code generation, made
while a process of its own tries the random schedules of the test suite; what they miss, the unit
tests of the package may find. At least 95 % must be caught.
"""

from __future__ import annotations

import argparse
import sys

from tests.mutants.running import BROKEN, MUTANTS, run

WANTED = 0.95


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--list", action="store_true", help="name the mutants and end")
    parser.add_argument("--only", metavar="NAME", action="append", help="try this one")
    parser.add_argument("--cases", type=int, default=400, help="random schedules for each")
    parser.add_argument("--no-tests", action="store_true", help="do not ask the unit tests")
    parser.add_argument("--verbose", action="store_true", help="print what the check says")
    options = parser.parse_args()
    if unknown := set(options.only or ()) - {mutant.name for mutant in MUTANTS}:
        parser.error(f"no such mutant: {', '.join(unknown)}")
    chosen = [m for m in MUTANTS if not options.only or m.name in options.only]
    if options.list:
        for mutant in chosen:
            print(f"{mutant.name:34} {mutant.file:36} {mutant.meaning}")
        return 0
    caught = 0
    for mutant in chosen:
        outcome = run(mutant, cases=options.cases, with_tests=not options.no_tests)
        caught += outcome.by not in ("", BROKEN)
        verdict = f"{outcome.by}, {outcome.where}" if outcome.by else "SURVIVES"
        print(f"{mutant.name:34} {outcome.seconds:5.1f} s  {verdict}", flush=True)
        if options.verbose:
            print(outcome.text)
    print(f"{caught} of {len(chosen)} mutants caught ({caught / len(chosen):.0%})")
    return 0 if caught >= WANTED * len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
