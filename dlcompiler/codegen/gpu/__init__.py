"""Generate device code of the C family from programs for a GPU: CUDA C, OpenCL C.

- `dialects`: what differs between the languages;
- `generator`: the entry point, and the head of a kernel;
- `statements`: threads, shared memory, barriers, failed checks, vectors;
- `lanes`: a vector operation as operations on its lanes;
- `index_type`: whether indices fit into 32 bits.

Expressions, helper functions and identifiers are those of `codegen.c`.
"""

from __future__ import annotations

from dlcompiler.codegen.gpu.generator import emit_cuda, emit_opencl

__all__ = ["emit_cuda", "emit_opencl"]
