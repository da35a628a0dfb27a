"""A GPU of Arm, whose threads have program counters of their own and no shared memory.

What its threads share lies in the memory that all of them use, so copying to it saves nothing. Its
arithmetic is on vectors of 128 bits, which the program must ask for.

**Sources:** Arm, "Mali-T600 Series GPU OpenCL Developer Guide", versions 1 to 3; L. Zheng,
"Optimizing Mobile Deep Learning on ARM GPU with TVM", 2018; Rockchip, "RK3399 Datasheet".
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from dlcompiler.target.gpus import GPU, GPU_EMITS, scopes_of
from dlcompiler.target.model import CacheLevel, Rate, Target

_ARM = "Arm, Mali-T600 Series GPU OpenCL Developer Guide"
_TVM = "L. Zheng, 'Optimizing Mobile Deep Learning on ARM GPU with TVM', 2018"
_RK3399 = "Rockchip, RK3399 Datasheet"
_ASSUMED = "assumed"

LIMITS = MappingProxyType(
    {
        **GPU.limits,
        "warp_size": 1,
        "max_threads_per_block": 256,
        "max_shared_bytes": 32 * 1024,
        "max_vector_bytes": 16,
        "max_threads_per_processor": 384,
        "max_blocks_per_processor": 384,
        "registers_per_processor": 384 * 16,  # 4 vector registers of 128 bits for each thread
        "registers_per_block": 384 * 16,
        "max_registers_per_thread": 64,
        "register_unit": 4,
        "register_files": 1,
        "shared_bytes_per_processor": 1 << 30,  # it is memory like any other
        "shared_unit": 16,
        "reserved_shared_bytes": 0,
    }
)

RATES = MappingProxyType(
    {
        "clock": Rate(800e6, "1/s", _RK3399), "clock_least": Rate(200e6, "1/s", _RK3399),
        "clock_most": Rate(800e6, "1/s", _RK3399),
        "schedulers": Rate(3, "1/clock", _TVM + ": pipelines; two for arithmetic, one for memory"),
        "vector lanes": Rate(4, "1", _TVM + ": vector units of 128 bits"),
        "float32": Rate(8, "1/clock", _TVM + ": two pipelines, a vector of 4 each"),
        "float16": Rate(16, "1/clock", _TVM + ": as float32, vectors of 8"),
        "float64": Rate(2, "1/clock", _ASSUMED), "integer": Rate(8, "1/clock", _ARM),
        "special": Rate(2, "1/clock", _ASSUMED), "convert": Rate(8, "1/clock", _ASSUMED),
        "memory_units": Rate(1, "1/clock", _TVM + ": one load/store pipeline"),
        "lookups": Rate(1, "1/clock", _TVM + ": one load/store pipeline"),
        "l1": Rate(32, "byte/clock", _ARM + ": a vector of 16 bytes, counted as a sector of 32"),
        "l2_port": Rate(16, "byte/clock", _ASSUMED + ": a bus of 128 bits"),
        "l2": Rate(32, "byte/clock", _ASSUMED + ": a bus of 128 bits for two cores"),
        "dram": Rate(12.8e9, "byte/s", _RK3399 + ": 64 bits at 1,600 MT/s"),
        "dram_fraction": Rate(0.9, "1", _ASSUMED + ": as on an H200"),
        "float_latency": Rate(4, "clock", _ASSUMED), "l1_latency": Rate(10, "clock", _ASSUMED),
        "shared_latency": Rate(10, "clock", _ASSUMED + ": shared memory is memory"),
        "l2_latency": Rate(40, "clock", _ASSUMED), "dram_latency": Rate(100, "clock", _ASSUMED),
        "barrier": Rate(30, "clock", _ASSUMED), "launch": Rate(40_000, "clock", _ASSUMED),
    }
)  # fmt: skip

MALI_T860: Target = replace(
    GPU,
    name="mali-t860",
    emits=GPU_EMITS,
    also_in=("opencl",),
    triple="",
    cpu="",
    vector_registers=16,
    cores=4,
    caches=(
        CacheLevel("L1", 16 * 1024, line=64, shared_by=1),
        CacheLevel("L2", 256 * 1024, line=64, shared_by=4),
    ),
    scopes=tuple(s for s in scopes_of(LIMITS["max_shared_bytes"]) if s.name != "warp"),
    limits=LIMITS,
    limits_from=_ARM,
    rates=RATES,
)
"""The GPU of a Rockchip RK3399."""
