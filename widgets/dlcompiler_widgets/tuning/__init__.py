"""The tuning dashboard, and the view that opens trials below it.

``session`` has the user's actions and choices, ``snapshot`` builds the contents of each part,
``knowledge`` evaluates the cost model, ``dashboard`` and ``control`` connect them to the page.
"""

from dlcompiler_widgets.tuning.dashboard import TuningDashboard
from dlcompiler_widgets.tuning.still import compare_tuners, tuning_picture
from dlcompiler_widgets.tuning.view import TuningView

__all__ = ["TuningDashboard", "TuningView", "compare_tuners", "tuning_picture"]
