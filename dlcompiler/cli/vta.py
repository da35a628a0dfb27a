"""``dlcompiler vta``: run programs of VTA beside what hardware took for them."""

from __future__ import annotations

import argparse
import json

from dlcompiler.cli.command import Command
from dlcompiler.simulate.accelerators.measured import YEARS, Comparison, compare_file
from dlcompiler.terminal import show


def _run(args: argparse.Namespace) -> int:
    """Run the programs; exit with 1 if one cannot be run, or differs from what was measured."""
    found = []
    for comparison in compare_file(args.file, args.profile):
        found.append(comparison)
        if not args.json:
            show(_line(comparison))
    if args.json:
        print(json.dumps({"results": [each.to_json() for each in found]}))
    else:
        show(*_summary(found, args.profile))
    return 0 if all(each.is_equal for each in found) else 1


def _line(each: Comparison) -> str:
    cycles = "not timed" if each.cycles is None else f"{each.cycles} cycles"
    facts = [cycles]
    if each.cycles is not None and each.measured_cycles is not None:
        is_same = each.cycles == each.measured_cycles
        facts.append("as measured" if is_same else f"measured {each.measured_cycles}")
    for name, value in (("outputs", each.outputs_equal), ("trace", each.trace_equal)):
        if value is not None:
            facts.append(f"{name} {'equal' if value else 'DIFFERENT'}")
    if each.problem:
        facts.append(each.problem)
    return f"{each.id}: {'; '.join(facts)}"


def _summary(found: list[Comparison], profile: str) -> list[str]:
    def counted(name: str, values: list[bool | None]) -> str:
        known = [value for value in values if value is not None]
        return f"  {name:<8} equal for {sum(known)} of {len(known)}"

    cycles = [
        each.cycles == each.measured_cycles if each.measured_cycles is not None else None
        for each in found
    ]
    return [
        f"{len(found)} programs, simulated on profile {profile} (the RTL of {YEARS[profile]})",
        counted("cycles", list(cycles)),
        counted("outputs", [each.outputs_equal for each in found]),
        counted("traces", [each.trace_equal for each in found]),
    ]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="action")
    run = actions.add_parser(
        "run", help="run the programs of a file, and compare them with what was measured"
    )
    run.add_argument("file", help="JSON lines, perhaps compressed by gzip (docs/VTA.md)")
    run.add_argument("--profile", choices=tuple(YEARS), default="B", help="A: 2019, B: 2021")
    run.add_argument("--json", action="store_true", help="print JSON")
    run.set_defaults(act=_run)


def _act(args: argparse.Namespace) -> int:
    status: int = args.act(args)
    return status


COMMAND = Command("run programs of the accelerator VTA on its simulators", _add_arguments, _act)
