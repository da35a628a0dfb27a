"""``dlcompiler graph-operators``: print the documentation page about the operators of graphs."""

from __future__ import annotations

import argparse

from dlcompiler.cli.command import Command
from dlcompiler.views.reference.graph_operator_page import graph_operator_page


def _no_arguments(parser: argparse.ArgumentParser) -> None:
    del parser


def run(_: argparse.Namespace) -> int:
    """Print the page."""
    print(graph_operator_page(), end="")
    return 0


COMMAND = Command("print the page about the operators of graphs", _no_arguments, run)
