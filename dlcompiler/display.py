"""How core objects show themselves: the one upward reference, to printers and `views`.

A core object's ``__str__`` or ``_repr_html_`` calls `render` with its kind; the printer or the view
is loaded only then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dlcompiler.registry import Registry

REGISTRY: Registry[Callable[[Any], Any]] = Registry(
    "view",
    {
        "expr": "dlcompiler.ir.printer:format_expr",
        "func": "dlcompiler.views.html:func_html",
        "schedule": "dlcompiler.views.html:schedule_html",
        "history": "dlcompiler.views.html:history_html",
        "tensor": "dlcompiler.views.html:tensor_html",
        "operation": "dlcompiler.views.html:operation_html",
        "stage": "dlcompiler.views.schedule_cards:stage_html",
        "verdict": "dlcompiler.views.schedule_cards:verdict_html",
        "moves": "dlcompiler.views.schedule_cards:moves_html",
        "target": "dlcompiler.views.machine_cards:target_html",
        "function": "dlcompiler.views.machine_cards:function_html",
        "timing": "dlcompiler.views.machine_cards:timing_html",
        "paired": "dlcompiler.views.machine_cards:paired_html",
        "verified": "dlcompiler.views.machine_cards:verified_html",
        "races": "dlcompiler.views.report_cards:races_html",
        "comparison": "dlcompiler.views.report_cards:comparison_html",
        "trace": "dlcompiler.views.report_cards:trace_html",
        "operator": "dlcompiler.views.space_cards:operator_html",
        "space": "dlcompiler.views.space_cards:space_html",
        "config": "dlcompiler.views.space_cards:config_html",
        "tuning_run": "dlcompiler.views.tuning:tuning_html",
        "step": "dlcompiler.views.steps:step_html",
        "steps": "dlcompiler.views.steps:steps_html",
        "steps_model": "dlcompiler.views.steps:steps_model",
    },
)


def render(kind: str, value: Any) -> str:
    """Return `value` as the text or HTML of what is registered for `kind`."""
    result: str = REGISTRY[kind](value)
    return result


def model(kind: str, value: Any) -> dict[str, Any]:
    """Return the view model of `value`: JSON-able data."""
    result: dict[str, Any] = REGISTRY[f"{kind}_model"](value)
    return result
