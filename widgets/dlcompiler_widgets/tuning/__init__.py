"""A tuning run, watched: the dashboard, and the view that opens trials below it.

``session`` is what it does, ``snapshot`` what it shows, ``knowledge`` what it asks of the model,
``dashboard`` and ``control`` how both reach a page.
"""

from dlcompiler_widgets.tuning.dashboard import TuningDashboard
from dlcompiler_widgets.tuning.still import compare_tuners, tuning_picture
from dlcompiler_widgets.tuning.view import TuningView

__all__ = ["TuningDashboard", "TuningView", "compare_tuners", "tuning_picture"]
