"""``dlcompiler tune``: search for the fastest config of works, and keep it in a file."""

from __future__ import annotations

import argparse
from pathlib import Path

from dlcompiler.bench.problems import NotThere
from dlcompiler.bench.shipping import find_config, keep
from dlcompiler.bench.works import GRAMMAR, form, parse_works
from dlcompiler.cli.command import Command


def run(args: argparse.Namespace) -> int:
    """Tune the works, one after the other."""
    for work in parse_works(args.works):
        try:
            found = find_config(work, trials=args.trials, seconds=args.seconds, seed=args.seed)
        except NotThere as reason:
            print(f"{work.text:<36} {reason}")
            continue
        values = ", ".join(f"{name}={value}" for name, value in found.values.items())
        print(f"{work.text:<36} {found.ratio:.2f} × the config used so far: {values}", flush=True)
        if args.into is not None and found.is_worth_keeping:
            keep(Path(args.into), found)
    return 0


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    forms = "; ".join(form(family) for family in GRAMMAR)
    parser.add_argument("works", nargs="+", metavar="WORK", help=f"what to tune: {forms}")
    parser.add_argument("--trials", type=int, default=128, help="most trials of a work")
    parser.add_argument("--seconds", type=float, help="no trial of a work begins later")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--into",
        metavar="FILE",
        help="keep configs that are faster than those used so far: dlcompiler/ops/tuned/*.json",
    )


COMMAND = Command("search for the fastest configs of works", _add_arguments, run)
