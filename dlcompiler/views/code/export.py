"""Write a schedule as a Python program, or as a notebook.

JSON and links, which are read back, are in `schedule.saved`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from dlcompiler import te
from dlcompiler.schedule.saved.document import Saved
from dlcompiler.schedule.saved.renamed import renamed
from dlcompiler.te.notation.printer import python_variables

Json = dict[str, Any]


@dataclass(frozen=True)
class Code:
    """The pieces of a program that makes a schedule."""

    expression: str
    steps: str
    lowered: str
    """Lowers it, and shows the loop nest."""
    checked: str
    """Verifies and measures it."""
    explored: str
    """Opens the workbench."""


def python_text(saved: Saved) -> str:
    """Return a complete Python program that makes a schedule and prints its loop nest.

    It contains the expression as notation, needs no other code, and lowers to the same IR.

    Parameters
    ----------
    saved
        The schedule, at its state.

    Raises
    ------
    DLCompilerError
        If the expression has no text: it has a reduction of the user's own.
    """
    code = code_of(saved)
    return f"{code.expression}\n{code.steps}\n{code.lowered}"


def notebook_text(saved: Saved) -> str:
    """Return a notebook that makes a schedule, shows, verifies and measures it.

    Parameters
    ----------
    saved
        The schedule, at its state.

    Returns
    -------
    str
        JSON of nbformat 4.5, without outputs.
    """
    code = code_of(saved)
    title = re.sub(r"[^\w .-]", " ", saved.name).strip() or "schedule"
    cells = [
        _markdown(f"# {title}\n\nThe expression, in notation:"),
        _code(code.expression),
        _markdown("Its schedule, step by step:"),
        _code(code.steps),
        _markdown("The loop nest that it lowers to:"),
        _code(code.lowered),
        _markdown("Is it right, and is it fast? Both run in a worker process."),
        _code(code.checked),
        _markdown("The workbench, where every step can be undone:"),
        _code(code.explored),
    ]
    book = {
        "cells": [{"id": f"cell-{n}", **cell} for n, cell in enumerate(cells)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def code_of(saved: Saved) -> Code:
    """Return the pieces of a program that makes a schedule; see `python_text`."""
    twin, args = renamed(saved.schedule, saved.args)
    outputs = [t for stage in twin.history.history.root.state.stages if stage.is_output
               for t in stage.tensors]  # fmt: skip
    expression = te.notation_python(*outputs)
    s = _free("s", expression)
    variables = python_variables(*outputs)
    steps = twin.trace.to_python(s, variables)
    node = twin.node
    if node.name or node.note:
        steps += f"{s}.describe({node.name!r}, {node.note!r})\n"
    # Variables are named like tensors and axes: none of ours may be called the same.
    dlc, kernel, show = (_free(name, expression, steps) for name in ("dlc", "kernel", "Explorer"))
    params = f"[{', '.join(variables[tensor] for tensor in args)}]"
    name, target = f"name={saved.name!r}", f"target={saved.target!r}"
    imported = "Explorer" if show == "Explorer" else f"Explorer as {show}"
    module = "dlcompiler as dlc" if dlc == "dlc" else f"dlcompiler as {dlc}"
    return Code(
        f"import {module}\nfrom dlcompiler import te\n\n{expression}\n",
        steps,
        f"print({dlc}.lower({s}, {params}, {name}))\n",
        f"print({dlc}.verify({s}, {params}, {target}))\n"
        f"{kernel} = {dlc}.build({s}, {params}, {target}, {name})\n"
        f"print({dlc}.measure({kernel}))\n",
        f"from dlcompiler_widgets import {imported}\n\n{show}({s}, {params}, {target}, {name})\n",
    )


def _free(name: str, *texts: str) -> str:
    """Return `name`, with underscores appended until it is a word of none of the texts."""
    words = {word for text in texts for word in re.findall(r"\w+", text)}
    while name in words:
        name += "_"
    return name


def _markdown(text: str) -> Json:
    return {"cell_type": "markdown", "metadata": {}, "source": text}


def _code(text: str) -> Json:
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": text.rstrip("\n"),
    }
