"""Loop IR to LLVM IR, as text: for x86, Arm and whatever else LLVM knows.

- `generator`: the way in;
- `types`: dtypes, constants and identifiers as text;
- `writer`: functions and modules while they are written;
- `debug`: which line of the loop IR an instruction carries out;
- `arithmetic`, `conversions`, `calls`: operations on operands;
- `functions`: exp, log, sin, … as mathematics on vectors;
- `lanes`, `addresses`, `memory`: loads and stores of one element or of many;
- `intrinsics`: the machine code of tensor intrinsics;
- `streaming`: stores past the caches;
- `expressions`, `statements`: the two walks over the loop IR;
- `parallel`: loops that become functions of their own.
"""

from __future__ import annotations

from dlcompiler.codegen.llvm.generator import emit

__all__ = ["emit"]
