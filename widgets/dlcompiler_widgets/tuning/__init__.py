"""The tuning view: watch a search, and stop it."""

from dlcompiler_widgets.tuning.widget import StopButton, TuningCurve, TuningView

__all__ = ["StopButton", "TuningCurve", "TuningView"]
