"""The text form of modules, in the manner of Relay's: `module_text` prints it, `parse` reads it.

::

    #[version = "0.0.5"]
    def @main(%x: Tensor[(1, 64), float32], %w: Tensor[(10, 64), float32]) {
      %0 = nn.dense(%x, %w);
      nn.relu(%0)
    }

Each value that is computed has a line and a number. Constants other than numbers are in a section
of metadata at the end. Names that are no identifiers are in quotes: ``%"a b"``.
"""

from dlcompiler.graph.text.document import from_json, to_json
from dlcompiler.graph.text.parser import parse, parse_expr
from dlcompiler.graph.text.printer import expr_text, module_text

__all__ = ["expr_text", "from_json", "module_text", "parse", "parse_expr", "to_json"]
