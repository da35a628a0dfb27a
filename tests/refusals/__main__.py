"""Force what the schedule refuses as semantic, and show what would go wrong.

A refusal without evidence may be over-strict: it is printed to be looked at. At most 1 % may stay
unexplained.
"""

from __future__ import annotations

import argparse
import collections
import sys
import time

from tests.refusals.searching import Refusal, refusals_of

ALLOWED = 0.01


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.refusals", description=__doc__)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--first", type=int, default=0, help="the seed to begin with")
    parser.add_argument("--verbose", action="store_true", help="print the explained ones, too")
    options = parser.parse_args()
    seen, unexplained, kinds = 0, list[Refusal](), collections.Counter[str]()
    seed, start = options.first, time.monotonic()
    while seen < options.count:
        for refusal in refusals_of(seed):
            seen += 1
            kinds[f"{refusal.primitive}: {refusal.evidence.partition(':')[0] or 'none'}"] += 1
            if not refusal.evidence:
                unexplained.append(refusal)
            if options.verbose or not refusal.evidence:
                print(refusal, flush=True)
        seed += 1
    for kind, count in kinds.most_common():
        print(f"{count:6}  {kind}")
    print(
        f"{seen} semantic refusals forced (seeds {options.first} to {seed - 1}, "
        f"{time.monotonic() - start:.0f} s): {len(unexplained)} unexplained"
    )
    return 0 if len(unexplained) <= ALLOWED * seen else 1


if __name__ == "__main__":
    sys.exit(main())
