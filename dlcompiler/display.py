"""Display of core objects, by printers and `views` that are imported at first use.

A core object's ``__str__`` or ``_repr_html_`` calls `render` with its kind. This is the only place
where the core refers to packages above it: by strings, which are resolved at the call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dlcompiler.registry import Registry

REGISTRY: Registry[Callable[[Any], Any]] = Registry(
    "view",
    {
        "expr": "dlcompiler.ir.printer:format_expr",
        "func": "dlcompiler.views.render.html:func_html",
        "module": "dlcompiler.views.graphs.module_card:module_html",
        "model_comparison": "dlcompiler.views.graphs.comparison_card:comparison_html",
        "memory_plan": "dlcompiler.views.graphs.memory_card:memory_html",
        "model": "dlcompiler.views.graphs.model_card:model_html",
        "schedule": "dlcompiler.views.render.html:schedule_html",
        "history": "dlcompiler.views.render.html:history_html",
        "tensor": "dlcompiler.views.render.html:tensor_html",
        "operation": "dlcompiler.views.render.html:operation_html",
        "stage": "dlcompiler.views.cards.schedules:stage_html",
        "verdict": "dlcompiler.views.cards.schedules:verdict_html",
        "moves": "dlcompiler.views.cards.schedules:moves_html",
        "target": "dlcompiler.views.cards.machines:target_html",
        "fragment": "dlcompiler.views.device.fragment:fragment_html",
        "function": "dlcompiler.views.cards.machines:function_html",
        "timing": "dlcompiler.views.cards.machines:timing_html",
        "paired": "dlcompiler.views.cards.machines:paired_html",
        "verified": "dlcompiler.views.cards.machines:verified_html",
        "races": "dlcompiler.views.cards.reports:races_html",
        "caches": "dlcompiler.views.cards.reports:caches_html",
        "gpu_report": "dlcompiler.views.cards.gpu_reports:gpu_report_html",
        "gpu_report_text": "dlcompiler.views.cards.gpu_reports:gpu_report_text",
        "accelerator_report": "dlcompiler.views.cards.accelerator_reports:accelerator_report_html",
        "timeline": "dlcompiler.views.device.timeline:timeline_html",
        "timeline_svg": "dlcompiler.views.device.timeline:timeline_svg",
        "timeline_text": "dlcompiler.views.device.timeline:timeline_text",
        "timeline_trace": "dlcompiler.views.device.timeline_trace:timeline_trace",
        "comparison": "dlcompiler.views.cards.reports:comparison_html",
        "trace": "dlcompiler.views.cards.reports:trace_html",
        "operator": "dlcompiler.views.cards.spaces:operator_html",
        "space": "dlcompiler.views.cards.spaces:space_html",
        "config": "dlcompiler.views.cards.spaces:config_html",
        "tuning_run": "dlcompiler.views.tuning:tuning_html",
        "step": "dlcompiler.views.history.steps:step_html",
        "steps": "dlcompiler.views.history.steps:steps_html",
        "steps_model": "dlcompiler.views.history.steps:steps_model",
    },
)


def render(kind: str, value: Any) -> str:
    """Return `value` as text or HTML, by the function that is registered for `kind`."""
    result: str = REGISTRY[kind](value)
    return result


def model(kind: str, value: Any) -> dict[str, Any]:
    """Return the view model of `value`: JSON-able data."""
    result: dict[str, Any] = REGISTRY[f"{kind}_model"](value)
    return result
