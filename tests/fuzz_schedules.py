"""Try random schedules of random expressions until the time is over; print what fails.

``python -m tests.fuzz_schedules --seconds 600`` goes on at the seed where the last campaign in
``--folder`` stopped. Each case depends on its seed only: ``--replay 1017`` repeats one, and the
line that a failure prints repeats it with fewer steps and a simpler expression.
"""

from __future__ import annotations

import argparse
import faulthandler
import random
import sys
from dataclasses import replace
from pathlib import Path

from tests.fuzz import campaign, targets
from tests.fuzz.checks import Case, case_of
from tests.fuzz.expressions import TEMPLATES, random_expression
from tests.fuzz.threads import ThreadWalk
from tests.fuzz.walks import Walk

OPENCL_SHARE = 0.37
"""A tenth of all cases then runs in OpenCL C, if all are tried as code of a GPU."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--cases", type=int, default=sys.maxsize)
    parser.add_argument("--folder", type=Path, help="default: build/fuzz, or build/fuzz-threads")
    parser.add_argument("--threads", action="store_true", help="schedules for GPUs, simulated")
    parser.add_argument(
        "--gpu-share", type=float, default=targets.GPU_SHARE, metavar="SHARE",
        help="of the cases with threads: also as code of this CPU",
    )  # fmt: skip
    parser.add_argument(
        "--opencl-share", type=float, default=OPENCL_SHARE, metavar="SHARE",
        help="of these: also in OpenCL C, where the limits of a GPU allow it (three in ten)",
    )  # fmt: skip
    parser.add_argument("--template", choices=sorted(TEMPLATES))
    parser.add_argument("--replay", type=int, metavar="SEED")
    parser.add_argument("--steps", type=numbers, help="of a replay: which steps to keep")
    parser.add_argument("--choices", type=numbers, help="of a replay: those of its expression")
    options = parser.parse_args()
    faulthandler.enable()
    targets.GPU_SHARE = options.gpu_share
    targets.OPENCL_SHARE = options.opencl_share
    walk = ThreadWalk if options.threads else Walk
    if options.replay is None:
        failed = campaign.run(
            options.folder or Path("build/fuzz-threads" if options.threads else "build/fuzz"),
            seconds=options.seconds,
            most=options.cases,
            template=options.template,
            walk=walk,
        )
        return 1 if failed else 0
    case = replayed(options.replay, options.template, options.steps, options.choices, walk)
    print(case)
    result = campaign.attempt(options.replay, options.template, case, walk=walk)
    print(result.text or f"passed: {result.reached}")
    return 1 if result.kind else 0


def replayed(
    seed: int,
    template: str | None,
    steps: list[int] | None,
    choices: list[int] | None,
    walk: type[Walk] = Walk,
) -> Case:
    """Return the case of a seed, or a smaller one."""
    case = case_of(seed, template, walk=walk)
    if choices is not None:
        expression = random_expression(random.Random(0), case.expression.template, choices)
        case = replace(case, expression=expression)
    if steps is not None:
        if max(steps, default=0) >= max(len(case.steps), 1):
            raise SystemExit(f"seed {seed} has {len(case.steps)} steps now: the cases have changed")
        case = replace(case, steps=tuple(case.steps[n] for n in steps))
    return case


def numbers(text: str) -> list[int]:
    return [] if text == "none" else [int(word) for word in text.split(",")]


if __name__ == "__main__":
    sys.exit(main())
