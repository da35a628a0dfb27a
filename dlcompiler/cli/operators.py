"""``dlcompiler operators``: print the documentation page about operators."""

from __future__ import annotations

import argparse

from dlcompiler.cli.command import Command
from dlcompiler.views.reference.operator_page import operator_page


def _no_arguments(parser: argparse.ArgumentParser) -> None:
    del parser


def run(_: argparse.Namespace) -> int:
    """Print the page."""
    print(operator_page(), end="")
    return 0


COMMAND = Command("print the page about the operators", _no_arguments, run)
