"""Generate the documentation page about passes from their docstrings."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator

from dlcompiler.ir import PrimFunc
from dlcompiler.passes import Pass, flatten_storage, specialize_conditions
from dlcompiler.pipeline.pipelines import EXTRA_PASSES, INSTRUMENTS, passes_of
from dlcompiler.target.accelerators.presets import PYNQ
from dlcompiler.target.gpus import GPU
from dlcompiler.target.presets import C99, X86_64_AVX2
from dlcompiler.views.reference.docstrings import markdown

HEAD = """\
# Passes

A pass turns loop IR into loop IR, and changes no result. This page is written by
`dlcompiler passes` from the passes' own descriptions; each *before* and *after* here is a test.
"""


def pass_page() -> str:
    """Return the page as Markdown."""
    lines = [HEAD]
    known: set[str] = set()
    machines = (("a CPU", X86_64_AVX2), ("a GPU", GPU), ("C", C99), ("an accelerator", PYNQ))
    for title, target in machines:
        passes = passes_of(target)
        lines += [f"## The order for {title}", ""]
        lines += [_row(number, item) for number, item in enumerate(passes, 1)]
        lines += ["", *_sections(passes, known)]
    lines += [
        "## On request",
        "",
        "`lower` and `build` take `extra=`, `instrument=` and `conditions=`.",
        "",
    ]
    for option, chosen in (("extra", EXTRA_PASSES), ("instrument", INSTRUMENTS)):
        lines += [f'- `{option}="{name}"`: {item.name}' for name, item in chosen.items()]
    lines += ["- `conditions=[n >= 128, m % 4 == 0]`: specialize, behind the first pass"]
    lines += ["", *_sections([*EXTRA_PASSES.values(), *INSTRUMENTS.values()], known)]
    lines += [*_section(specialize_conditions, known)]
    lines += ["## Tools", "", *_section(flatten_storage, known)]
    return "\n".join(lines).rstrip() + "\n"


def _row(number: int, item: Pass) -> str:
    needs = f"; needs {_names(item.requires)}" if item.requires else ""
    gives = f"; gives {_names(item.establishes)}" if item.establishes else ""
    return f"{number}. **{item.name}**{needs}{gives}"


def _names(properties: frozenset[str]) -> str:
    return " and ".join(sorted(properties))


def _sections(passes: list[Pass] | tuple[Pass, ...], known: set[str]) -> Iterator[str]:
    for item in passes:
        yield from _section(item.run, known)


def _section(run: Callable[..., PrimFunc], known: set[str]) -> Iterator[str]:
    """Yield the description of a pass, unless the page has it already."""
    function = run.func if isinstance(run, functools.partial) else run
    if function.__name__ in known:
        return
    known.add(function.__name__)
    yield f"### {function.__name__}\n"
    yield markdown(inspect.getdoc(sys.modules[function.__module__]) or "")
