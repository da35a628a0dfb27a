"""Loop IR to C: source that a person reads and any C compiler takes.

- `generator`: the way in;
- `dialect`: what C99 calls types and functions; another language of its family is another table;
- `names`: identifiers that clash with nothing;
- `text`: pieces of expressions, and where they need parentheses;
- `literals`, `arithmetic`, `conversions`, `calls`: operations, with the IR's semantics;
- `helpers`: the small functions that these need, put into the source only where they are used;
- `expressions`, `statements`: the two walks over the loop IR;
- `buffers`: which temporaries are arrays on the stack, and which come from ``malloc``;
- `interface`: the header.
"""

from __future__ import annotations

from dlcompiler.codegen.c.generator import emit

__all__ = ["emit"]
