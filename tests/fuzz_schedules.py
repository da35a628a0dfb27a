"""Try random schedules of random expressions until the time is over; print what fails.

``python -m tests.fuzz_schedules --seconds 600 --seed 1`` runs cases ``1:0``, ``1:1`` … Each one
depends on its name only: ``--case 1:17`` repeats one. ``--log FILE`` keeps the place and the
failures; the same command with the same file goes on where the last one stopped, and reports a case
that ended the process.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import json
import random
import sys
import time
import traceback
from pathlib import Path

from tests.fuzz.expressions import TEMPLATES, random_expression
from tests.fuzz.schedules import Case, check, random_case, shrink


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--case", help="one case, such as 1:17")
    parser.add_argument("--template", choices=sorted(TEMPLATES))
    parser.add_argument("--log", type=Path)
    options = parser.parse_args()
    faulthandler.enable()
    if options.case:
        return 1 if report(options.case, options.template) else 0

    log = Log(options.log)
    number = log.next_number(options.seed)
    end = time.monotonic() + options.seconds
    failures, outcomes = 0, collections.Counter[str]()
    shown = time.monotonic()
    while time.monotonic() < end:
        name = f"{options.seed}:{number}"
        log.write({"begin": name})
        outcome = report(name, options.template)
        if outcome:
            failures += 1
            log.write({"failed": name, "text": outcome})
        outcomes["failed" if outcome else "passed"] += 1
        number += 1
        if time.monotonic() - shown > 30:
            shown = time.monotonic()
            print(f"{name}: {dict(outcomes)}", flush=True)
    print(f"seed {options.seed}: {number} cases, {failures} failures in this run", flush=True)
    return 1 if failures else 0


def case_of(name: str, template: str | None = None) -> Case:
    """Return the case of a name."""
    rng = random.Random(name)
    return random_case(rng, random_expression(rng, template))


def report(name: str, template: str | None) -> str:
    """Check a case; print and return what is wrong, or nothing."""
    try:
        case = case_of(name, template)
    except Exception:
        text = f"== case {name}: no schedule\n{traceback.format_exc()}"
        print(text, flush=True)
        return text
    error = failure(case)
    if error is None:
        return ""
    kind = type(error)
    small = shrink(case, lambda fewer: isinstance(failure(fewer), kind))
    error = failure(small) or error
    details = "".join(traceback.format_exception(error, limit=-6))
    text = f"== case {name} ({case.expression.template}), data seed {case.seed}\n{small}\n{details}"
    print(text, flush=True)
    return text


def failure(case: Case) -> Exception | None:
    try:
        check(case)
    except Exception as error:
        return error
    return None


class Log:
    """Lines of JSON: where a campaign is, and what failed."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def write(self, item: dict[str, str]) -> None:
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(item) + "\n")

    def next_number(self, seed: str) -> int:
        if self.path is None or not self.path.exists():
            return 0
        names = [json.loads(line).get("begin") for line in self.path.read_text().splitlines()]
        numbers = [int(n.split(":")[1]) for n in names if n and n.split(":")[0] == seed]
        if numbers:
            print(f"going on after {seed}:{numbers[-1]} (if it ended the process, try it: --case)")
        return max(numbers, default=-1) + 1


if __name__ == "__main__":
    sys.exit(main())
