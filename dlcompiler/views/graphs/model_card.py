"""The card of a compiled model: its kernels in the order in which they run, and their memory."""

from __future__ import annotations

from dlcompiler.graph.execution import CompiledModel, DeviceModel, RunnableModel
from dlcompiler.graph.execution.steps import COPY, Step
from dlcompiler.graph.memory import MemoryPlan
from dlcompiler.views.cards.card import Card, card, card_html
from dlcompiler.views.graphs.module_card import MOST_ROWS, shortened
from dlcompiler.views.render.boxes import count
from dlcompiler.views.render.markup import Markup
from dlcompiler.views.render.scene import Cell
from dlcompiler.views.render.units import format_bytes

LONGEST = 60
"""Most characters of a name in the table; [1]."""


def model_html(model: RunnableModel) -> Markup:
    """Return the card of a model that runs."""
    return card_html(model_card(model))


def model_card(model: RunnableModel) -> Card:
    """Return the card of a model that runs.

    Parameters
    ----------
    model : RunnableModel
        The model.
    """
    steps = model.steps
    columns = ["step", "call", "kernel", "schedule", "bytes it stores", "in"]
    rows = [_row(model, n, step) for n, step in enumerate(steps[:MOST_ROWS])]
    title = "Steps" if len(rows) == len(steps) else f"The first {len(rows)} of {len(steps)} steps"
    arenas = model.plans if isinstance(model, DeviceModel) else {"": model.plan}
    copies = None
    if isinstance(model, DeviceModel):
        copies = _copies([transfer.bytes for transfer in model.transfers])
    return card(
        "Compiled model", f"{count(len(model.kernel_names), 'kernel')}, called {len(steps)} times",
        facts=[
            ("target", _target(model)),
            *((f"arena {name}".strip(), _arena(plan)) for name, plan in arenas.items()),
            ("weights", format_bytes(model.weight_bytes)),
            ("copies between devices", copies),
            ("takes", _params(model, is_output=False)),
            ("returns", _params(model, is_output=True)),
        ],
        tables=[(title, {"columns": columns, "rows": rows})],
    )  # fmt: skip


def _target(model: RunnableModel) -> str | None:
    if isinstance(model, DeviceModel):
        return ", ".join(f"{name}: {target.name}" for name, target in model.targets.items())
    return model.target.name if isinstance(model, CompiledModel) else None


def _arena(plan: MemoryPlan) -> str:
    size = format_bytes(plan.bytes)
    return f"{size}, no plan is smaller" if plan.bytes == plan.bound else size


def _copies(sizes: list[int]) -> str:
    return f"{len(sizes)}, {format_bytes(sum(sizes))} in each call" if sizes else "none"


def _params(model: RunnableModel, *, is_output: bool) -> str:
    found = [
        f"{shortened(p.name, LONGEST)}: {p.dtype}{list(p.shape)}"
        for p in model.params
        if p.is_output == is_output
    ]
    return shortened(", ".join(found), 500)


def _row(model: RunnableModel, number: int, step: Step) -> list[Cell]:
    is_copy = step.kernel == COPY
    outputs = step.places[1:] if is_copy else step.places[len(step.places) - step.outputs :]
    kernels = getattr(model, "kernels", ())
    schedule = "" if is_copy or not kernels else kernels[step.kernel].operator or "plain"
    places = [
        f"arena {place.device} at {place.number:,}".replace("  ", " ")
        if place.kind == "arena"
        else f"result {place.number}"
        for place in outputs
    ]
    return [
        number,
        shortened(step.name, LONGEST),
        "copy between devices" if is_copy else model.kernel_names[step.kernel],
        schedule,
        sum(place.bytes for place in outputs),
        ", ".join(places[:3]) + (" …" if len(places) > 3 else ""),
    ]
