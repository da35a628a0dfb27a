"""``dlcompiler primitives``: print the documentation page about schedule primitives."""

from __future__ import annotations

import argparse

from dlcompiler.cli.command import Command
from dlcompiler.views.reference.primitive_page import primitive_page


def _no_arguments(parser: argparse.ArgumentParser) -> None:
    del parser


def run(_: argparse.Namespace) -> int:
    """Print the page."""
    print(primitive_page(), end="")
    return 0


COMMAND = Command("print the page about the schedule primitives", _no_arguments, run)
