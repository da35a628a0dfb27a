"""Generate readable C99 from loop IR, for any C compiler.

- `generator`: the entry point;
- `dialect`: the names of types and functions in C99; a similar language needs another table;
- `names`: identifiers that clash with nothing;
- `text`: pieces of expressions, and where they need parentheses;
- `literals`, `arithmetic`, `conversions`, `calls`: operations, with the IR's semantics;
- `helpers`: small functions that these call; a source contains only those that it uses;
- `expressions`, `statements`: the two walks over the loop IR;
- `buffers`: which temporaries are arrays on the stack, and which come from ``malloc``;
- `interface`: the header.
"""

from __future__ import annotations

from dlcompiler.codegen.c.generator import emit

__all__ = ["emit"]
