"""What a person looks at: view models of core values, and static pictures of these.

A *view model* is a JSON-able dictionary made by a pure function of a core value. The same one
feeds a widget, a static picture, a table and a test; no view decides anything by itself.

======================  =============================================================
`loop_tree`             the loop nest of a schedule, stages inside the loops they are attached to
`program`               the lowered program line by line, and what a step changed in it
`history_tree`          the states of a schedule, and where its cursor is
`compare_states`        two states: their steps, their metrics, their programs
`palette`               what may be done next to a loop, and why the rest may not
`metrics`               metrics of a state: operations, memory traffic, iterations at once
`memory_scopes`         where buffers live while a loop runs, what moves between the levels
`thread_block`          which thread of a block touches what in each phase; simulated
`advice`                what the rules say of which loop, and the step to try
`preview`               what a step would do: the nest, metrics, or what to do instead
`notation_lines`        what each stage computes; index variables know their loops
`python_view`           the steps as Python; lines know their states and loops
`code_text`             LLVM IR and assembly; instructions know their loops
`pass_steps`            the passes of a lowering, and what one changed
======================  =============================================================

The last four are not here but in `notation_view`, `python_view`, `code_text` and `pass_steps`;
`thread_block` is in a module of its name.

Fragments of HTML come from `views.html`: no script, no ``id``, every text escaped; `page` binds
fragments to a page that stands alone. `text_table` is for terminals.
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
