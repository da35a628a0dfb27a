"""Presets of GPUs: limits of kernels, and properties that determine their cost.

The simulator (`dlcompiler.simulate`) runs programs for them; their code can be read in the
languages of ``also_in``. ``cuda`` and ``opencl`` are devices of this machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from dlcompiler.target.fragments import OPERANDS
from dlcompiler.target.gpu_rates import ARCHITECTURES, MODELS, Model, rates_of
from dlcompiler.target.model import CacheLevel, MemoryScope, Rate, Target

WARP = 32
"""Threads of a warp, on every GPU here; [1]."""

CUDA_GUIDE = "CUDA C++ Programming Guide 12.9, table 21"
"""The document that gives the limits of kernels."""

FIXED_SHARED_BYTES = 48 * 1024
"""Shared memory that a kernel of CUDA may declare; where the processor has more, a launch adds it.
**Source:** CUDA C++ Programming Guide 12.9, table 21 [byte]."""

#: Limits of CUDA for a kernel on all of these processors. ``max_vthreads`` is a bound on code size,
#: as in classic TVM.
#: Source: CUDA C++ Programming Guide 12.9, table 21 (technical specifications).
CUDA_LIMITS = MappingProxyType(
    {
        "max_threads_per_block": 1024,
        "max_threads_x": 1024,
        "max_threads_y": 1024,
        "max_threads_z": 64,
        "max_blocks_x": 2**31 - 1,
        "max_blocks_y": 65_535,
        "max_blocks_z": 65_535,
        "max_shared_bytes": FIXED_SHARED_BYTES,
        "max_local_bytes": 512 * 1024,
        "max_vthreads": 8,
        "max_vector_bytes": 16,
        "max_lanes": 16,
        "warp_size": WARP,
    }
)

#: Register file of a multiprocessor: its registers of 32 bits, the unit in which a warp gets them,
#: and the parts, each of which serves its own warps.
#: Source: CUDA C++ Programming Guide 12.9, table 21; NVIDIA's cuda_occupancy.h of CUDA 12.9.
REGISTERS = {
    "max_registers_per_thread": 255,
    "registers_per_processor": 65_536,
    "registers_per_block": 65_536,
    "register_unit": 256,
    "register_files": 4,
}
#: By compute capability, of one multiprocessor: threads, blocks, and shared memory [KiB].
#: Source: CUDA C++ Programming Guide 12.9, table 21.
PROCESSORS = {
    (5, 2): (2048, 32, 96),
    (6, 0): (2048, 32, 64),
    (6, 1): (2048, 32, 96),
    (7, 0): (2048, 32, 96),
    (7, 5): (1024, 16, 64),
    (8, 0): (2048, 32, 164),
    (8, 6): (1536, 16, 100),
    (8, 9): (1536, 24, 100),
    (9, 0): (2048, 32, 228),
    (10, 0): (2048, 32, 228),
    (12, 0): (1536, 24, 100),
}

GPU_THREAD_AXES = (
    *("blockIdx.x", "blockIdx.y", "blockIdx.z"),
    *("threadIdx.x", "threadIdx.y", "threadIdx.z"),
    "vthread",
)


def scopes_of(shared_bytes: int) -> tuple[MemoryScope, ...]:
    """Return the memories of a GPU whose blocks have some shared memory [byte]."""
    local_bytes = CUDA_LIMITS["max_local_bytes"]
    return (
        MemoryScope("global", rank=0, capacity=None, alignment=256, accessible_by=("cpu", "gpu")),
        MemoryScope("shared", 1, shared_bytes, alignment=16, accessible_by=("block",)),
        MemoryScope("warp", 2, WARP * 255 * 4, alignment=4, accessible_by=("warp",)),
        MemoryScope("local", 3, local_bytes, alignment=16, accessible_by=("thread",)),
    )


#: Emitter of tensor intrinsics -> the least compute capability of processors with its instruction.
#: Source: CUDA C++ Programming Guide 12.9, "Features and Technical Specifications"; PTX ISA 8.8.
INSTRUCTIONS = MappingProxyType({"dot4": (6, 1), **dict.fromkeys(OPERANDS, (8, 0))})
ASYNC_COPIES = "async copies"
"""In `Target.emits`: a thread can begin a copy to shared memory and go on."""
GPU_EMITS = frozenset({"vectors", "prefetch"})
"""What code for every GPU may contain."""


def processor_limits(compute: tuple[int, int]) -> dict[str, int]:
    """Return the limits of one multiprocessor; those that are not known are left out.

    Parameters
    ----------
    compute : tuple of int
        Compute capability: (major, minor).

    Notes
    -----
    **Source:** NVIDIA's cuda_occupancy.h of CUDA 12.9: shared memory is given out in units of 256
    bytes up to compute capability 7, and of 128 bytes from 8 on; from 8 on each block has 1 KiB
    more than it asks for. Capability 6.0 has two register files. CUDA C++ Programming Guide 12.9,
    table 21: from 7 on, one block can have all shared memory of a multiprocessor.
    """
    if compute not in PROCESSORS:
        return dict(REGISTERS)
    threads, blocks, shared_kib = PROCESSORS[compute]
    reserved = 1024 if compute[0] >= 8 else 0
    return {
        **REGISTERS,
        "max_shared_bytes": shared_kib * 1024 - reserved if compute[0] >= 7 else FIXED_SHARED_BYTES,
        "register_files": 2 if compute == (6, 0) else 4,
        "max_threads_per_processor": threads,
        "max_blocks_per_processor": blocks,
        "shared_bytes_per_processor": shared_kib * 1024,
        "shared_unit": 128 if compute[0] >= 8 else 256,
        "reserved_shared_bytes": reserved,
    }


def emits_of(compute: tuple[int, int]) -> frozenset[str]:
    """Return what code for a GPU of NVIDIA may contain, by its compute capability."""
    return GPU_EMITS.union(
        (name for name, least in INSTRUCTIONS.items() if compute >= least),
        [ASYNC_COPIES] if compute >= (8, 0) else [],
    )


def with_architecture(base: Target, name: str, architecture: str) -> Target:
    """Return a target of CUDA for another architecture, such as ``sm_75``."""
    number = re.sub(r"\D", "", architecture)
    compute = int(number[:-1]), int(number[-1])
    limits = MappingProxyType({**CUDA_LIMITS, **processor_limits(compute)})
    return replace(
        base, name=name, cpu=architecture, emits=emits_of(compute), limits=limits,
        scopes=scopes_of(limits["max_shared_bytes"]),
    )  # fmt: skip


def gpu_target(
    name: str,
    compute: tuple[int, int],
    processors: int,
    *,
    l1_kib: int,
    l2_kib: int,
    rates: Mapping[str, Rate] | None = None,
) -> Target:
    """Return the target of a GPU.

    Parameters
    ----------
    name : str
        Name in the registry, or chosen by the user.
    compute : tuple of int
        Compute capability: (major, minor).
    processors : int
        Number of streaming multiprocessors; each runs several blocks.
    l1_kib, l2_kib : int
        First level data cache of one multiprocessor, where it shares its memory with ``shared``,
        and second level cache [KiB].
    rates : mapping of str to Rate, optional
        What `dlcompiler.target.gpu_rates.rates_of` returns; without them no times are predicted.
    """
    limits = MappingProxyType({**CUDA_LIMITS, **processor_limits(compute)})
    return Target(
        name=name,
        device="gpu",
        language="loops",
        also_in=("cuda", "ptx", "opencl", "hip", "metal", "amdgcn", "sass"),
        runs_on="simulator",
        triple="nvptx64-nvidia-cuda",
        cpu=f"sm_{compute[0]}{compute[1]}",
        features=(),
        vector_extension="SIMT",
        vector_bits=8 * CUDA_LIMITS["max_vector_bytes"],
        vector_registers=255,
        cores=processors,
        caches=(
            CacheLevel("L1", l1_kib * 1024, line=128, shared_by=1),
            CacheLevel("L2", l2_kib * 1024, line=128, shared_by=processors),
        ),
        scopes=scopes_of(limits["max_shared_bytes"]),
        thread_axes=GPU_THREAD_AXES,
        emits=emits_of(compute),
        limits=limits,
        limits_from=CUDA_GUIDE,
        rates=rates or MappingProxyType({}),
    )


def _target_of(model: Model) -> Target:
    return gpu_target(
        model.name, model.compute, model.processors,
        l1_kib=ARCHITECTURES[model.compute].l1_kib, l2_kib=model.l2_kib, rates=rates_of(model),
    )  # fmt: skip


BY_NAME: Mapping[str, Target] = {model.name: _target_of(model) for model in MODELS}
"""The simulated GPUs by their names in the registry."""
# The registry finds each by an attribute of this module: RTX_3090.
globals().update({name.upper().replace("-", "_"): target for name, target in BY_NAME.items()})
A100 = BY_NAME["a100"]
RTX_A6000 = BY_NAME["rtx-a6000"]
GPU = replace(A100, name="gpu")
"""The default GPU, where no other is named."""

#: The NVIDIA GPU of this machine. Its code is for devices of at least this compute capability.
CUDA = replace(
    A100,
    name="cuda",
    rates=MappingProxyType({}),  # of the device that is here, the driver measures times
    language="cuda",
    also_in=tuple(name for name in A100.also_in if name != "cuda"),
    runs_on="cuda",
)

OPENCL_SHARED_BYTES = 32 * 1024
#: The OpenCL device of this machine. Every device of OpenCL 1.2 and later has room for this.
#: Source: The OpenCL Specification 1.2, table 4.3 (CL_DEVICE_LOCAL_MEM_SIZE: at least 32 KiB).
OPENCL = replace(
    GPU,
    name="opencl",
    rates=MappingProxyType({}),
    language="opencl",
    emits=GPU_EMITS,
    also_in=("cuda", "ptx", "hip", "metal", "amdgcn"),
    runs_on="opencl",
    triple="",
    cpu="",
    scopes=scopes_of(OPENCL_SHARED_BYTES),
    limits=MappingProxyType({**CUDA_LIMITS, "max_shared_bytes": OPENCL_SHARED_BYTES}),
    limits_from="The OpenCL Specification 1.2, table 4.3, and the limits of CUDA",
)
