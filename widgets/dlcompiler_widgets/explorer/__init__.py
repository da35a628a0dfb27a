"""The workbench: the Explorer with all its panes, and each pane as a widget of its own.

``session`` handles requests, ``snapshot`` builds the contents of panes, and ``widget`` connects
both to a page. ``panes`` and ``text_panes`` define the widgets of single panes.
"""

from dlcompiler_widgets.explorer.explorer import Explorer
from dlcompiler_widgets.explorer.panes import (
    Advice,
    Banks,
    CacheMisses,
    ChipMemories,
    Coalescing,
    Dependences,
    HistoryTree,
    IterationSpace,
    LoopTree,
    MemoryScopes,
    Occupancy,
    ScheduleGraph,
    ThreadBlock,
    Timeline,
    Waves,
)
from dlcompiler_widgets.explorer.text_panes import CodePanes, PassDiff

__all__ = [
    "Advice",
    "Banks",
    "CacheMisses",
    "ChipMemories",
    "Coalescing",
    "CodePanes",
    "Dependences",
    "Explorer",
    "HistoryTree",
    "IterationSpace",
    "LoopTree",
    "MemoryScopes",
    "Occupancy",
    "PassDiff",
    "ScheduleGraph",
    "ThreadBlock",
    "Timeline",
    "Waves",
]
