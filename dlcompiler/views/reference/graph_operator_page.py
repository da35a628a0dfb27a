"""Generate the documentation page about the operators of graphs from their table."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType

from dlcompiler.graph import operators
from dlcompiler.graph.operators.base import GraphOperator, Pattern
from dlcompiler.graph.operators.functions import signature_text

HEAD = """\
# Operators of graphs

This page is written by `dlcompiler graph-operators` from the operator table,
`dlcompiler.graph.operators`.

`op.NAME(…)` of `dlcompiler.graph` makes a call. Arguments before `*` are expressions; one with the
default `None` may be left out. Those behind it are attributes, which `help(op.NAME)` explains.
Names, the order of arguments and the names of attributes are those of Relay, where it has the
operator.

The meaning of an operator, which `graph.evaluate` computes, takes floats as float64 and rounds
once. Integers wrap. An operator is

- **elementwise**, **broadcast**, **injective**, a **reduction**, an **anchor** (a loop nest of its
  own, to whose result elementwise operators can be fused) or **opaque**: this decides how it can be
  fused;
- **movable** if its layout follows that of its data, when a pass changes it;
- **scheduled** by an operator of the [operator library](OPERATORS.md), or else by the rules of its
  kind.

An operator whose result has a shape that only the data decides is not part of the table: `unique`,
`argwhere`, `non_max_suppression`.
"""


def graph_operator_page() -> str:
    """Return the page as Markdown."""
    lines = [HEAD]
    for family in operators.FAMILIES:
        lines += _section(family)
    return "\n".join(lines).rstrip() + "\n"


def _section(family: ModuleType) -> Iterator[str]:
    title = (inspect.getdoc(family) or "").partition("\n")[0].rstrip(".")
    yield f"## {title}\n"
    yield "\n".join(map(_entry, family.TABLE)) + "\n"


def _entry(entry: GraphOperator) -> str:
    """Return an item of a list: signature, sentence, and facts for passes."""
    facts = [Pattern(entry.pattern).name.lower()]
    facts += ["movable"] if entry.layouts is not None else []
    facts += [f"scheduled by `{entry.kernel}`"] if entry.kernel else []
    facts += ["computed by NumPy only"] if entry.define is None else []
    return f"- `{signature_text(entry)}`<br>\n  {entry.doc} *{_joined(facts)}.*"


def _joined(facts: list[str]) -> str:
    text = ", ".join(facts)
    return text[0].upper() + text[1:]
