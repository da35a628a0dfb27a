"""Generate LLVM IR, as text, from loop IR: for x86, Arm and the other targets of LLVM.

- `generator`: the entry point;
- `types`: dtypes, constants and identifiers as text;
- `writer`: collects the lines of functions and modules;
- `debug`: line tables: the line of the loop IR for each instruction;
- `arithmetic`, `conversions`, `calls`: operations on operands;
- `functions`: exp, log, sin, … computed by vector arithmetic;
- `lanes`, `addresses`, `memory`: loads and stores of one element or of many;
- `intrinsics`: the machine code of tensor intrinsics;
- `streaming`: non-temporal stores;
- `expressions`, `statements`: the two walks over the loop IR;
- `parallel`: parallel loops, outlined as functions.
"""

from __future__ import annotations

from dlcompiler.codegen.llvm.generator import emit

__all__ = ["emit"]
