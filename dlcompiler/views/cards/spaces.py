"""Cards of operators, spaces and configs."""

from __future__ import annotations

from dlcompiler.ops.base import Operator
from dlcompiler.space import Config, Space
from dlcompiler.views.cards.card import Card, card, card_html
from dlcompiler.views.render.markup import Markup
from dlcompiler.views.render.scene import Cell, Table
from dlcompiler.views.render.units import format_count

_MOST_VALUES = 24


def operator_html(operator: Operator) -> Markup:
    """Return the card of an operator: its parts, schedules and templates."""
    return card_html(operator_card(operator))


def space_html(space: Space) -> Markup:
    """Return the card of a space: its knobs, and the rules that its configs obey."""
    return card_html(space_card(space))


def config_html(config: Config) -> Markup:
    """Return the card of a config: the values of its knobs."""
    return card_html(config_card(config))


def operator_card(operator: Operator) -> Card:
    """Return the card of an operator: its parts, schedules and templates."""
    parts: list[list[Cell]] = [
        ["workload(…)", "names its shapes and dtypes"],
        ["define(workload)", "the expression, as tensors"],
        ["space(workload, target)", "what a tuner may choose"],
        ["default_config(workload, target)", "a choice without measurement"],
        ["template(workload, target, config)", "a schedule and its parameters"],
        ["reference(workload, seed)", "inputs with the right outputs"],
    ]
    packs = any(schedule.packing for schedule in operator.schedules.values())
    return card(
        operator.name,
        "an operator: what it computes, and the choices there are",
        facts=[
            ("has schedules for", ", ".join(operator.schedules)),
            ("has a kernel that packs inputs", "yes" if packs else None),
        ],
        tables=[("What it has", {"columns": ["call", "gives"], "rows": parts})],
    )


def space_card(space: Space) -> Card:
    """Return the card of a space: its knobs, and the rules that its configs obey."""
    knobs: Table = {
        "columns": ["knob", "choices", "values"],
        "rows": [[knob.name, len(knob.values), _values(knob.values)] for knob in space.knobs],
    }
    rules: Table = {"columns": ["rule"], "rows": [[item.rule] for item in space.filters]}
    tables = [("Knobs", knobs)] + ([("Rules on combinations", rules)] if space.filters else [])
    size = f"{format_count(space.size)} points"
    if space.filters:
        size += f", of which the rules allow {space.count}"
    return card(f"Space of {space.workload}", size, tables=tables)


def config_card(config: Config) -> Card:
    """Return the card of a config: the values of its knobs."""
    rows: list[list[Cell]] = [[name, _shown(value)] for name, value in config.values.items()]
    return card(
        "Config",
        f"a value for each of {len(rows)} knobs",
        tables=[("", {"columns": ["knob", "value"], "rows": rows})],
    )


def _values(values: tuple[object, ...]) -> str:
    shown = ", ".join(_shown(value) for value in values[:_MOST_VALUES])
    return shown if len(values) <= _MOST_VALUES else f"{shown}, … {_shown(values[-1])}"


def _shown(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case "":
            return "(none)"
        case _:
            return str(value)
