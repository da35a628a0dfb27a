"""View models of core values, and static pictures made from them.

A *view model* is a JSON-able dictionary that a pure function makes from a core value. The same view
model feeds a widget, a static picture, a table and a test; a view decides nothing by itself.

=================  ================================================================================
`views.loops`      the loop tree of a schedule, the iteration space, dependences, strides, graphs
                   of axes and stages: `loop_tree`, `loop_key`
`views.memory`     `metrics` of a state, footprints, the levels of memory that buffers fit into
`views.device`     threads of a block: what they touch in each phase, barriers, memories of a GPU
`views.code`       notation, Python, loop IR (`program`), LLVM IR, assembly, and what a pass changed
`views.history`    the states of a schedule (`history_tree`), two of them compared
                   (`compare_states`), measured steps
`views.moves`      possible steps (`palette`), the effect of one step (`preview`), advice
`views.tuning`     the pictures and tables of a tuning run
`views.graphs`     calls in the regions of their kernels, verdicts of edges, arenas, passes
`views.cards`      what a notebook shows for an object that is the value of a cell
`views.render`     scenes, HTML, tables for terminals (`text_table`), colours, units; `page` joins
                   fragments to a page of its own
`views.reference`  pages of the documentation that are written from docstrings
=================  ================================================================================

This module exports the names that other packages use most. `per_state` memoises what a view
derives from a schedule state. All HTML is a fragment without scripts, in which every text is
escaped. It has no ``id``, so that a page can hold it twice.
"""

from dlcompiler.views.code.program import Program, program
from dlcompiler.views.history.compare import StateComparison, compare_states
from dlcompiler.views.history.tree import HistoryTree, branch_name, history_tree
from dlcompiler.views.loops.line_keys import loop_key
from dlcompiler.views.loops.loop_tree import LoopTree, loop_tree
from dlcompiler.views.moves.palette import Palette, palette
from dlcompiler.views.moves.preview import Preview, preview
from dlcompiler.views.render.page import Section, page
from dlcompiler.views.render.text import loop_table, text_table

__all__ = [
    "HistoryTree",
    "LoopTree",
    "Palette",
    "Preview",
    "Program",
    "Section",
    "StateComparison",
    "branch_name",
    "compare_states",
    "history_tree",
    "loop_key",
    "loop_table",
    "loop_tree",
    "page",
    "palette",
    "preview",
    "program",
    "text_table",
]
