"""Generate the documentation page about operators from their docstrings."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from dlcompiler import ops
from dlcompiler.views.reference.docstrings import markdown, summary

HEAD = """\
# Operators

This page is written by `dlcompiler operators` from the modules' own descriptions.
"""


def operator_page() -> str:
    """Return the page as Markdown."""
    lines = [HEAD, markdown(inspect.getdoc(ops) or "")]
    by_module: dict[str, list[str]] = {}
    for name, place in ops.REGISTRY.places().items():
        by_module.setdefault(place.partition(":")[0], []).append(name)
    for module, names in by_module.items():
        lines += _section(module, names)
    return "\n".join(lines).rstrip() + "\n"


def _section(module: str, names: list[str]) -> Iterator[str]:
    yield f"## {', '.join(names)}\n"
    yield markdown(inspect.getdoc(importlib.import_module(module)) or "")
    operator = ops.operator(names[0])
    for device, made in operator.schedules.items():
        name = f"The schedule for `{device}`"
        for title, function in ((name, made.apply), ("Its knobs", made.space)):
            if text := _description(function):
                yield f"**{title}.** {markdown(text)}"


def _description(function: Callable[..., Any]) -> str:
    return summary(inspect.getdoc(function) or "")
