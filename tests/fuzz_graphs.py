"""Compare random graphs before and after each pass; print what fails.

``python -m tests.fuzz_graphs --cases 50000``. ``--replay SEED`` repeats one case. An assertion
names the pass. With ``--models``, random graphs are compiled instead, unfused and fused, and
compared with the interpreter.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import traceback

from dlcompiler.graph import module_text
from tests.graph.execution import executed_graphs
from tests.graph.pass_cases import PASSES, case, check


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=50000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--only", choices=PASSES, action="append", metavar="PASS")
    parser.add_argument("--replay", type=int, metavar="SEED")
    parser.add_argument("--models", action="store_true")
    options = parser.parse_args()
    names = tuple(options.only or PASSES)
    if options.replay is not None:
        made = executed_graphs.case if options.models else case
        print(module_text(made(options.replay)[0]))
        if options.models:
            executed_graphs.check(options.replay)
        else:
            check(options.replay, names)
        return 0
    revision = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    print(
        f"revision {revision.stdout.strip() or 'unknown'}, {time.strftime('%Y-%m-%d')}",
        flush=True,
    )
    start, failed, seed = time.monotonic(), 0, options.first
    while seed < options.first + options.cases and time.monotonic() - start < options.seconds:
        try:
            if options.models:
                executed_graphs.check(seed)
            else:
                check(seed, names)
        except Exception:
            failed += 1
            print(f"seed {seed} failed:\n{traceback.format_exc()}", flush=True)
        seed += 1
        if seed % 500 == 0:
            done = seed - options.first
            print(f"{time.strftime('%H:%M:%S')} {done} cases, {failed} failed", flush=True)
    print(f"{seed - options.first} cases, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
