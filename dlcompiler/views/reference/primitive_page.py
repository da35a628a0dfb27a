"""Generate the documentation page about schedule primitives from their docstrings."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

from dlcompiler.schedule import Schedule, Stage
from dlcompiler.schedule.primitives import REGISTRY
from dlcompiler.schedule.stage_group import StageGroup
from dlcompiler.views.reference.docstrings import markdown

HEAD = """\
# Schedule primitives

A primitive is one step of a schedule. It changes how a tensor is computed, and never what is
computed: a step that would change the result is refused, with the reason. Each entry shows the
call, the loops before and after, when the step is legal, and its names in TVM and in Halide.

In the calls, `s` is a schedule, `s[C]` the stage of the tensor C, and `g` a group of stages. The
parameters are explained at [Stage and Schedule](api/schedule.md). `s.can("split", i, factor=4)`
says whether a step is legal without taking it.

This page is written by `dlcompiler primitives` from the primitives' own descriptions.
"""

GROUPS = {
    "Loops of a stage": (
        "split", "tile", "fuse", "reorder", "unroll", "vectorize", "parallel", "tensorize",
    ),
    "Where a stage is computed": (
        "compute_at", "compute_inline", "compute_root",
        "create_group", "compute_group_at", "compute_group_root",
    ),
    "Copies, memory and layout": (
        "cache_read", "cache_write", "set_scope", "transform_layout", "storage_align",
        "align_extent", "double_buffer", "rolling_buffer",
    ),
    "Reductions": ("rfactor",),
    "Threads of a device": ("bind", "env_threads", "set_store_predicate"),
    "Hints": ("prefetch", "pragma"),
}  # fmt: skip
"""Title -> the primitives of that part of the page."""
_NAMES = re.compile(r"\s+(In (?:TVM|Halide)\b)")
"""Where the sentence about the names in TVM and Halide begins: it gets a paragraph of its own."""


def primitive_page() -> str:
    """Return the page as Markdown."""
    lines = [HEAD, "| Primitive | What it does |", "|---|---|"]
    lines += [
        f"| [`{name}`](#{name}) | {_first_line(name)} |"
        for names in GROUPS.values()
        for name in names
    ]
    for title, names in GROUPS.items():
        lines += ["", f"## {title}", ""]
        for name in names:
            lines += _section(name)
    return "\n".join(lines).rstrip() + "\n"


def _section(name: str) -> Iterator[str]:
    yield f"### {name}\n"
    yield f"`{call_of(name)}`\n"
    yield markdown(_NAMES.sub(r"\n\n\1", _description(name)), "text")


def call_of(name: str) -> str:
    """Return the call of a primitive with its parameters: ``s[C].unroll(var)``."""
    for owner, receiver in ((Stage, "s[C]"), (Schedule, "s")):
        if hasattr(owner, name):
            return f"{receiver}.{name}({_parameters(getattr(owner, name))})"
    method = name.replace("group_", "")
    return f"g.{method}({_parameters(getattr(StageGroup, method))})"


def _parameters(method: Callable[..., Any]) -> str:
    _, *given = inspect.signature(method).parameters.values()
    return ", ".join(str(item.replace(annotation=item.empty)) for item in given)


def _first_line(name: str) -> str:
    return _description(name).partition("\n")[0]


def _description(name: str) -> str:
    module = importlib.import_module(REGISTRY.places()[name].partition(":")[0])
    return inspect.getdoc(module) or ""
