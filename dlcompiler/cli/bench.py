"""``dlcompiler bench``: the measured figures of this machine."""

from __future__ import annotations

import argparse
import json

from dlcompiler.bench import FIGURES, describe_machine, measure_figures
from dlcompiler.cli.command import Command
from dlcompiler.cli.doctor import describe_cpu
from dlcompiler.target.detect import host

SCHEMA_VERSION = 1


def run(args: argparse.Namespace) -> int:
    """Print each figure as soon as it is measured."""
    machine = {"cpu": describe_cpu(host()).replace("\n", "; "), **describe_machine()}
    chosen = args.only or list(FIGURES)
    if not args.json:
        for key, value in machine.items():
            print(f"{key:<26} {value}")
        print()
    results = []
    for figure in measure_figures(chosen):
        results.append(figure)
        if not args.json:
            print(f"{figure.name:<26} {figure.text}")
    if args.json:
        figures = [{"name": f.name, "values": f.values, "text": f.text} for f in results]
        print(json.dumps({"version": SCHEMA_VERSION, "machine": machine, "figures": figures}))
    return 0


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--figures", action="store_true", help="print all figures (the default)")
    parser.add_argument(
        "--only", action="append", choices=list(FIGURES), help="measure this figure; repeatable"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


COMMAND = Command("print the measured figures of this machine", _add_arguments, run)
