"""Display of core objects, by printers and `views` that are imported at first use.

A core object's ``__str__`` or ``_repr_html_`` calls `render` with its kind. This is the only place
where the core refers to packages above it: by strings, which are resolved at the call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from dlcompiler.registry import Registry

REGISTRY: Registry[Callable[[Any], Any]] = Registry(
    "view",
    {
        "expr": "dlcompiler.ir.printer:format_expr",
        "func": "dlcompiler.views.render.html:func_html",
        "module": "dlcompiler.views.graphs.module_card:module_html",
        "profile_model": "dlcompiler.views.graphs.profile_picture:profile_scene",
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
        "accelerator": "dlcompiler.views.cards.accelerators:accelerator_html",
        "accelerator_report": "dlcompiler.views.cards.accelerator_reports:accelerator_report_html",
        "accelerator_memories_model": "dlcompiler.views.device.accelerator_memories:memories_scene",
        "accelerator_roofline_model": "dlcompiler.views.device.accelerator_roofline:roofline_scene",
        "scene": "dlcompiler.views.render.scene:scene_html",
        "scene_svg": "dlcompiler.views.render.scene:scene_document",
        "scene_text": "dlcompiler.views.render.text:scene_text",
        "timeline_model": "dlcompiler.views.device.timeline:timeline_scene",
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


class Drawn:
    """A value that is a picture: a notebook shows it, and it can be had as SVG or as a table."""

    kind: ClassVar[str]
    """Of its view model, in `REGISTRY`."""

    @property
    def table(self) -> str:
        """What the picture shows, as a sentence and a table in text."""
        return render("scene_text", model(self.kind, self))

    @property
    def svg(self) -> str:
        """The picture as a file of SVG."""
        return render("scene_svg", model(self.kind, self))

    def __str__(self) -> str:
        return self.table

    def _repr_html_(self) -> str:
        return render("scene", model(self.kind, self))
