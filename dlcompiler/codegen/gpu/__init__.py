"""Generate device code from programs for a GPU: CUDA C, OpenCL C, HIP, Metal; PTX and AMDGCN.

Languages of the C family, whose expressions, helper functions and identifiers are those of
`codegen.c`:

- `dialects`: what differs between the languages;
- `generator`: the entry points, and the head of a kernel;
- `statements`: threads, shared memory, barriers, failed checks, vectors;
- `lanes`: a vector operation as operations on its lanes;
- `index_type`: whether indices fit into 32 bits;
- `tiles`: which elements of a tile on tensor cores a thread loads and stores, also for PTX;
- `lane_accesses`: the same as statements, for counters.

Assembly that LLVM writes, from the LLVM IR of `codegen.llvm`:

- `machines`: what differs between the machines;
- `assembly`: the entry points, and the lines of the text;
- `device_llvm`: threads, shared memory, barriers, failed checks;
- `narrowing`: indices in 32 bits;
- `nvvm`: tensor intrinsics;
- `sass`: PTX through the tools of NVIDIA.
"""

from __future__ import annotations

from dlcompiler.codegen.gpu.assembly import emit_amdgcn, emit_ptx
from dlcompiler.codegen.gpu.generator import emit_cuda, emit_hip, emit_metal, emit_opencl
from dlcompiler.codegen.gpu.sass import emit_sass

__all__ = [
    "emit_amdgcn",
    "emit_cuda",
    "emit_hip",
    "emit_metal",
    "emit_opencl",
    "emit_ptx",
    "emit_sass",
]
