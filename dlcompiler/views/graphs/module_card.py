"""A module of a graph as a card: its kernels as a picture, and the decisions as a table."""

from __future__ import annotations

from collections import Counter

from dlcompiler.graph import Module
from dlcompiler.graph.decisions import Decision
from dlcompiler.graph.ir import MAIN
from dlcompiler.views.cards.card import Card, card, card_html
from dlcompiler.views.graphs.folding import folded
from dlcompiler.views.graphs.picture import picture
from dlcompiler.views.graphs.units import Unit, units_of
from dlcompiler.views.render.boxes import count
from dlcompiler.views.render.markup import Markup
from dlcompiler.views.render.scene import Cell, Scene, Table
from dlcompiler.views.render.units import format_bytes

MOST_DECISIONS = 300
"""Most rows of the table of decisions; [1]."""
MOST_ROWS = 500
"""Most rows of the table of kernels; [1]."""
MOST_LINES = 6
"""Most calls of a kernel that its box names; [1]."""
LONGEST = 30
"""Most characters of a line in a box; [1]."""
HOW_TO_READ = (
    "values flow down the arrows. A box is a kernel, or a call that is none yet; a coloured one "
    "has several calls, which are fused. A dashed box is an input, or stands for boxes that are "
    "left out. Weights and constants are not drawn: a box says how many it reads."
)


def module_html(module: Module) -> Markup:
    """Return the card of a module."""
    return card_html(module_card(module))


def module_card(module: Module) -> Card:
    """Return the card of a module: the graph of its main function, and what passes decided.

    Parameters
    ----------
    module : Module
        The module.
    """
    name = MAIN if MAIN in module.functions else next(iter(module.functions), "")
    if not name:
        return card("Graph", "a module without functions")
    units = units_of(module, module[name])
    rest = [other for other in module.functions if other != name]
    return card(
        f"Graph of {name}",
        _summary(units),
        facts=[
            ("operators", _operators(units)),
            ("constants and weights", _weights(units)),
            ("other functions", shortened(", ".join(rest), 200)),
            ("decisions", _verdicts(module.log)),
        ],
        scene=graph_scene(units, name),
        tables=_tables(module.log),
    )


def _summary(units: list[Unit]) -> str:
    work = [unit for unit in units if not unit.is_input]
    calls = sum(len(unit.parts) for unit in work)
    fused = sum(len(unit.parts) > 1 for unit in work)
    if not fused:
        return f"{count(calls, 'call')}, each by itself"
    return f"{count(calls, 'call')} in {count(len(work), 'kernel')}, {fused} of them fused"


def _operators(units: list[Unit]) -> str:
    found = Counter(operator for unit in units for _, operator in unit.parts if operator)
    shown = [f"{number}\u00a0×\u00a0{name}" for name, number in found.most_common(8)]
    more = len(found) - len(shown)
    return ", ".join([*shown, *([f"{more} more"] if more > 0 else [])])


def _weights(units: list[Unit]) -> str:
    number = sum(unit.constants for unit in units)
    size = sum(unit.constant_bytes for unit in units)
    return f"read {number} times, {format_bytes(size)} in all" if number else ""


def _verdicts(log: tuple[Decision, ...]) -> str:
    found = Counter(decision.verdict for decision in log)
    return ", ".join(f"{number} {verdict}" for verdict, number in found.most_common())


def _tables(log: tuple[Decision, ...]) -> list[tuple[str, Table]]:
    """Return the decisions in short, and one by one: a long second table is folded."""
    if not log:
        return []
    found = Counter((d.made_by, d.verdict, d.rule) for d in log)
    rows: list[list[Cell]] = [[*key, number] for key, number in found.items()]
    short: Table = {"columns": ["pass", "verdict", "rule", "decisions"], "rows": rows}
    return [("What passes decided, by rule", short), ("Each decision", _decisions(log))]


def _decisions(log: tuple[Decision, ...]) -> Table:
    rows: list[list[Cell]] = [
        [
            decision.made_by,
            shortened(" → ".join(decision.subject), 80),
            decision.verdict,
            decision.reason,
            _effect(decision),
            decision.remedy,
        ]
        for decision in log[:MOST_DECISIONS]
    ]
    if len(log) > MOST_DECISIONS:
        rest = len(log) - MOST_DECISIONS
        rows.append([f"… {rest:,} more", "module.decisions() has all", None, None, None, None])
    columns = ["pass", "about", "verdict", "why", "effect", "to change it"]
    return {"columns": columns, "rows": rows}


def _effect(decision: Decision) -> str:
    """Return what a decision saves or costs, or what the one not taken would."""
    effect = decision.effect
    sizes = [
        (count(abs(effect.kernels), "kernel"), effect.kernels),
        (f"{format_bytes(abs(effect.bytes))} moved", effect.bytes),
    ]
    is_taken = not decision.verdict.startswith("not ")
    saves, costs = ("saves", "costs") if is_taken else ("would save", "would cost")
    return ", ".join(f"{saves if n > 0 else costs} {text}" for text, n in sizes if n)


def graph_scene(units: list[Unit], name: str) -> Scene:
    """Return the picture of a function.

    Parameters
    ----------
    units : list of Unit
        What `units_of` returned.
    name : str
        Its name in the module.
    """
    shown = folded(units)
    width, height, marks = picture(shown, {unit: box_lines(unit) for unit in shown})
    return {
        "title": f"Graph of {name}",
        "summary": _drawn(units, shown),
        "how_to_read": HOW_TO_READ,
        "width": width,
        "height": height,
        "marks": marks,
        "table": {"columns": ["kernel", "calls", "result", "reads"], "rows": _rows(units)},
    }


def _rows(units: list[Unit]) -> list[list[Cell]]:
    """Return the units as a table: the rows of those that come first."""
    rows: list[list[Cell]] = [
        [
            shortened(unit.name, 80),
            shortened(", ".join(operator for _, operator in unit.parts), 200) or "input",
            unit.result,
            shortened(", ".join(each.name for each in unit.reads), 200),
        ]
        for unit in units[:MOST_ROWS]
    ]
    if len(units) > MOST_ROWS:
        rows.append([f"… {len(units) - MOST_ROWS:,} more", None, None, None])
    return rows


def _drawn(units: list[Unit], shown: list[Unit]) -> str:
    hidden = len(units) - sum(not unit.is_fold for unit in shown)
    inputs = count(sum(unit.is_input for unit in units), "input")
    boxes = count(sum(not unit.is_input for unit in units), "box", "boxes")
    rest = f"; {hidden} are left out of the picture" if hidden else ""
    return f"{inputs}, {boxes}{rest}."


def box_lines(unit: Unit) -> list[str]:
    """Return the lines in the box of a unit: its calls, its result, and the weights it reads."""
    if unit.is_input:
        return [shortened(unit.name), unit.result] if unit.result else [shortened(unit.name)]
    if unit.is_fold:
        return [shortened(line) for line in (unit.name, *(name for name, _ in unit.parts))]
    names = [shortened(name) for name, _ in unit.parts] or [shortened(unit.name)]
    if len(names) > MOST_LINES:
        names = [*names[: MOST_LINES - 1], f"… {len(names) - MOST_LINES + 1} more"]
    read = f"reads {count(unit.constants, 'weight')}, {format_bytes(unit.constant_bytes)}"
    result = f"{'returns ' if unit.is_result else '→ '}{unit.result}" if unit.result else ""
    lines = [*names, shortened(result, 2 * LONGEST), read if unit.constants else ""]
    return [line for line in lines if line]


def shortened(text: str, most: int = LONGEST) -> str:
    """Return a text, or its beginning and an ellipsis.

    >>> shortened("layer1_unit1", 8)
    'layer1_…'
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"
