"""The directive ``names``: a table of the public names of a module, and an entry for each.

``.. names:: dlcompiler.te`` has a name on each line of its content. A class is described with its
members.
"""

from __future__ import annotations

import importlib
import inspect
import re
from typing import ClassVar

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

PRIMITIVE = re.compile(r"([Ss]ee) `primitives\.(\w+)`")


class Names(SphinxDirective):
    """Describe names of a module: a table with the first line of each, then all of them."""

    has_content = True
    required_arguments = 1
    option_spec: ClassVar = {}

    def run(self) -> list[nodes.Node]:
        """Return the table and the entries."""
        module = self.arguments[0]
        names = [line.strip() for line in self.content if line.strip()]
        lines = [f".. currentmodule:: {module}", "", ".. autosummary::", "   :nosignatures:", ""]
        lines += [f"   {name}" for name in names]
        for name in names:
            lines += ["", *_entry(module, name)]
        return self.parse_text_to_nodes("\n".join(lines))


def _entry(module: str, name: str) -> list[str]:
    value = getattr(importlib.import_module(module), name)
    if inspect.isclass(value):
        return [f".. autoclass:: {name}", "   :members:"]
    if inspect.isroutine(value):
        return [f".. autofunction:: {name}"]
    return [f".. autodata:: {name}", "   :no-value:"]


def link_primitives(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Link ``See `primitives.split` `` of a docstring to the page about the primitives."""
    del app, what, name, obj, options
    link = r"\1 `\2 <../PRIMITIVES.html#\2>`__ for the loops before and after"
    lines[:] = [PRIMITIVE.sub(link, line) for line in lines]


def keep_colons(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Let napoleon not take the words before a colon for the type of an attribute.

    It does so in the first line only.
    """
    del app, name, obj, options
    if what in ("attribute", "data", "property"):
        lines.insert(0, "")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the directive."""
    app.add_directive("names", Names)
    app.connect("autodoc-process-docstring", link_primitives)
    app.connect("autodoc-process-docstring", keep_colons, priority=400)  # napoleon's is 500
    return {"version": "1", "parallel_read_safe": True}
