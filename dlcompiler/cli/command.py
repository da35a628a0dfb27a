"""What a sub-command is."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dlcompiler.output_files import Rules


@dataclass(frozen=True)
class Command:
    """A sub-command: a line of help, its arguments, and what it does (returns the exit status)."""

    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def add_overwrite(parser: argparse.ArgumentParser) -> None:
    """Add the option that every command has which writes a file that the user names."""
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file")


def output_rules(args: argparse.Namespace, *sources: str | Path | None) -> Rules:
    """Return what a command may replace: never what it reads."""
    return Rules(args.overwrite, tuple(name for name in sources if name is not None))
