"""Bundle small files into one ES module and one style sheet per widget, without a build step.

anywidget loads a single module, and a replay page has to work from a file, where browsers refuse
to import another one. So the modules in ``js/`` are put into one text when a widget class is made:
each becomes a function that returns what it exports. Two forms are allowed, each beginning a line:

- ``import { a, b } from "./name.js";``
- ``export`` before ``function``, ``class`` or ``const``; ``export default NAME;`` ends what
  anywidget loads.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_JS = Path(__file__).parent / "js"
_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w-]+)\.js";\n', re.MULTILINE)
_DEFAULT = re.compile(r"^export default \w+;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


WORKBENCH_SHEETS = (
    "tokens", "workbench", "layout", "picture", "history", "text", "moves", "advice", "ladder",
    "dependences", "export", "help", "static",
)  # fmt: skip
"""The style sheets of the workbench, in their order."""
TUNING_SHEETS = ("tokens", "workbench", "layout", "picture", "text", "tuning", "static")
"""Those of the tuning dashboard."""
GRAPH_SHEETS = ("tokens", "workbench", "layout", "picture", "graph", "static")
"""Those of the fusion view."""


@cache
def module(entry: str) -> str:
    """Bundle a module of ``js/`` and all its imports into one module.

    Parameters
    ----------
    entry
        Name of a file without its ending.
    """
    return "\n".join([*map(_function, order(entry)[:-1]), _body(entry)])


@cache
def styles(*names: str) -> str:
    """Concatenate style sheets of ``js/``."""
    return "\n".join((_JS / f"{name}.css").read_text() for name in names)


def order(entry: str) -> list[str]:
    """Return a module and all its imports in dependency order: the module itself is last."""
    found: list[str] = []

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            raise ValueError(f"modules import each other: {' -> '.join((*path, name))}")
        if name not in found:
            for _, other in _IMPORT.findall(_source(name)):
                visit(other, (*path, name))
            found.append(name)

    visit(entry, ())
    return found


def _function(name: str) -> str:
    exports = ", ".join(_exports(name))
    body = _DEFAULT.sub("", _body(name))
    return f"const {_name(name)} = (() => {{\n{body}\nreturn {{ {exports} }};\n}})();\n"


def _source(name: str) -> str:
    return (_JS / f"{name}.js").read_text()


def _name(module_name: str) -> str:
    return f"module_{module_name.replace('-', '_')}"


def _exports(name: str) -> list[str]:
    return [match[1] for match in _EXPORT.findall(_source(name))]


def _body(name: str) -> str:
    text = _IMPORT.sub(lambda m: f"const {{{m[1]}}} = {_name(m[2])};\n", _source(name))
    return _EXPORT.sub(r"\1", text)
