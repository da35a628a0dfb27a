"""The type of sub-commands, and options that several of them share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dlcompiler.errors import UserError
from dlcompiler.output_files import Rules
from dlcompiler.target.detect import available_cores


@dataclass(frozen=True)
class Command:
    """A sub-command: its help text, its arguments, and the action that returns the exit status."""

    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def add_overwrite(parser: argparse.ArgumentParser) -> None:
    """Add ``--overwrite``, the option of all commands that write a file named by the user."""
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file")


def output_rules(args: argparse.Namespace, *sources: str | Path | None) -> Rules:
    """Return the rules for replacing files: a command never replaces the files that it reads."""
    return Rules(args.overwrite, tuple(name for name in sources if name is not None))


def threads_of(text: str, command: str) -> int:
    """Return the number of threads that ``--threads`` of a command names; ``all`` are all cores.

    Raises
    ------
    UserError
        It is no number, or this machine has fewer cores.
    """
    cores = available_cores()
    if text == "all":
        return cores
    if not text.isdecimal() or not 1 <= int(text) <= cores:
        raise UserError(
            f"{command} --threads", "not a number of threads for this machine", got=repr(text),
            expected=f"1 to {cores}, or all",
            because="on a shared core, times depend on the scheduler of the operating system",
        )  # fmt: skip
    return int(text)
