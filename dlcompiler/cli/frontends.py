"""``dlcompiler frontends``: print the documentation page about models of other libraries."""

from __future__ import annotations

import argparse

from dlcompiler.cli.command import Command
from dlcompiler.views.reference.frontend_page import frontend_page


def _no_arguments(parser: argparse.ArgumentParser) -> None:
    del parser


def run(_: argparse.Namespace) -> int:
    """Print the page."""
    print(frontend_page(), end="")
    return 0


COMMAND = Command("print the page about models of other libraries", _no_arguments, run)
