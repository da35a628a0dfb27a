"""Notebook widgets of dlcompiler: see a schedule, change it, watch a search.

::

    from dlcompiler_widgets import Explorer, GraphView, TuningView

    Explorer(s, [A, B, C])
    LoopTree(s)                # one pane of it; so are the others of `explorer`
    TuningView(run)
    GraphView(module)          # of a model: which calls are fused, and why

In a notebook, a schedule as the last line of a cell is then shown as its workbench, and a cell that
begins with ``%%explore`` holds an expression: see `notebook`.

A widget is a folder: ``widget.py`` (traits and callbacks, thin), ``index.js`` and ``style.css``. It
shows view models of `dlcompiler.views` and decides nothing itself.
"""

from dlcompiler_widgets.explorer import (
    Advice,
    Banks,
    CacheMisses,
    ChipMemories,
    Coalescing,
    CodePanes,
    Dependences,
    Explorer,
    HistoryTree,
    IterationSpace,
    LoopTree,
    MemoryScopes,
    Occupancy,
    PassDiff,
    ScheduleGraph,
    ThreadBlock,
    Timeline,
    Waves,
)
from dlcompiler_widgets.graphs import GraphPanel, GraphView
from dlcompiler_widgets.notebook import (
    join_notebook,
    load_ipython_extension,
    unload_ipython_extension,
)
from dlcompiler_widgets.tuning import (
    TuningDashboard,
    TuningView,
    compare_tuners,
    tuning_picture,
)

__all__ = [
    "Advice",
    "Banks",
    "CacheMisses",
    "ChipMemories",
    "Coalescing",
    "CodePanes",
    "Dependences",
    "Explorer",
    "GraphPanel",
    "GraphView",
    "HistoryTree",
    "IterationSpace",
    "LoopTree",
    "MemoryScopes",
    "Occupancy",
    "PassDiff",
    "ScheduleGraph",
    "ThreadBlock",
    "Timeline",
    "TuningDashboard",
    "TuningView",
    "Waves",
    "compare_tuners",
    "load_ipython_extension",
    "tuning_picture",
    "unload_ipython_extension",
]

join_notebook()
