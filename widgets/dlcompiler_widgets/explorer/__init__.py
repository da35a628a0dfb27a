"""The workbench: the Explorer with all its panes, and each pane as a widget of its own.

``session`` is what it does, ``snapshot`` what it shows, ``widget`` how both reach a page, ``panes``
and ``text_panes`` the single ones.
"""

from dlcompiler_widgets.explorer.explorer import Explorer
from dlcompiler_widgets.explorer.panes import (
    Advice,
    HistoryTree,
    IterationSpace,
    LoopTree,
    MemoryScopes,
    ScheduleGraph,
    ThreadBlock,
)
from dlcompiler_widgets.explorer.text_panes import CodePanes, PassDiff

__all__ = [
    "Advice",
    "CodePanes",
    "Explorer",
    "HistoryTree",
    "IterationSpace",
    "LoopTree",
    "MemoryScopes",
    "PassDiff",
    "ScheduleGraph",
    "ThreadBlock",
]
