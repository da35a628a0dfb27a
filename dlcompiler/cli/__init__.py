"""The ``dlcompiler`` command; each sub-command is one module here."""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
from collections.abc import Sequence

from dlcompiler import shell
from dlcompiler.cli.command import Command
from dlcompiler.errors import UserError
from dlcompiler.registry import Registry

REGISTRY: Registry[Command] = Registry(
    "command",
    {
        "doctor": "dlcompiler.cli.doctor:COMMAND",
        "tour": "dlcompiler.cli.tour:COMMAND",
        "bench": "dlcompiler.cli.bench:COMMAND",
        "model": "dlcompiler.cli.model:COMMAND",
        "tune": "dlcompiler.cli.tune:COMMAND",
        "db": "dlcompiler.cli.db:COMMAND",
        "vta": "dlcompiler.cli.vta:COMMAND",
        "primitives": "dlcompiler.cli.primitives:COMMAND",
        "passes": "dlcompiler.cli.passes:COMMAND",
        "operators": "dlcompiler.cli.operators:COMMAND",
        "graph-operators": "dlcompiler.cli.graph_operators:COMMAND",
        "frontends": "dlcompiler.cli.frontends:COMMAND",
    },
)
"""Sub-command -> where it is."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments. By default those of the process, whose streams and signals are then set up for
        a command: see `dlcompiler.shell`.

    Returns
    -------
    int
        Exit status: 0 success, 1 the command found something wrong, 2 the user can mend it; for
        signals and closed pipes see `dlcompiler.shell`.
    """
    if argv is None:
        return shell.run(lambda: _parsed(sys.argv[1:]), _act)
    return _act(_parsed(argv))


def _parsed(argv: Sequence[str]) -> argparse.Namespace:
    """Parse arguments; for ``--help`` and invalid arguments, argparse ends the process.

    Only the command that is named is imported, or all for ``--help``: they take a second.
    """
    parser = argparse.ArgumentParser(
        prog="dlcompiler", description="Explore how a tensor program becomes fast code."
    )
    parser.add_argument("--version", action="version", version=f"dlcompiler {version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    first = argv[0] if argv else ""
    is_help = first.startswith("-") and first != "--version"
    for name in REGISTRY:
        if name != first and not is_help:
            commands.add_parser(name)  # so that the error of a wrong name lists it
            continue
        command = REGISTRY[name]
        sub = commands.add_parser(name, help=command.help, description=command.help)
        command.add_arguments(sub)
        sub.set_defaults(run=command.run)
    return parser.parse_args(argv)


def _act(args: argparse.Namespace) -> int:
    """Run the command that the arguments name."""
    try:
        status: int = args.run(args)
    except UserError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return shell.USER_CAN_MEND_IT
    return status


def version() -> str:
    """Return the installed version."""
    try:
        return importlib.metadata.version("dlcompiler-lab")
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"
