"""``dlcompiler passes``: print the documentation page about passes."""

from __future__ import annotations

import argparse

from dlcompiler.cli.command import Command
from dlcompiler.views.reference.pass_page import pass_page


def _no_arguments(parser: argparse.ArgumentParser) -> None:
    del parser


def run(_: argparse.Namespace) -> int:
    """Print the page."""
    print(pass_page(), end="")
    return 0


COMMAND = Command("print the page about the passes", _no_arguments, run)
