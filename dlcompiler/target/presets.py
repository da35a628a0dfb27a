"""Targets as data, and what is common to all CPUs."""

from __future__ import annotations

from types import MappingProxyType

from dlcompiler.target.model import CacheLevel, MemoryScope, Target

#: LLVM 22 needs a time that grows without bound for wider vectors, and a kernel runs on threads
#: whose stacks are not ours: both limits keep the compiler and the kernel from taking the process
#: down.
CPU_LIMITS = MappingProxyType({"max_lanes": 64, "max_stack_bytes": 64 * 1024})

CPU_SCOPES = (
    MemoryScope("global", rank=0, capacity=None, alignment=64),
    MemoryScope("local", rank=3, capacity=CPU_LIMITS["max_stack_bytes"], alignment=64),
)

#: Used where the sizes of the caches cannot be read: those of most desktop cores of the last years.
TYPICAL_CACHES = (
    CacheLevel("L1d", 32 * 1024, line=64, shared_by=1),
    CacheLevel("L2", 256 * 1024, line=64, shared_by=1),
    CacheLevel("L3", 8 * 1024 * 1024, line=64, shared_by=4),
)

_SSE2 = ("sse", "sse2")
_AVX2 = (
    *_SSE2,
    *("sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16", "sahf"),
    *("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"),
)
_AVX512 = (*_AVX2, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")

#: LLVM's micro-architecture levels of x86-64 -> the features that code for them may use.
#: Source: x86-64 psABI, section 3.1.1, table 3.1.
X86_64_LEVELS = MappingProxyType(
    {
        "x86-64": _SSE2,
        "x86-64-v2": _AVX2[: _AVX2.index("avx")],
        "x86-64-v3": _AVX2,
        "x86-64-v4": _AVX512,
    }
)


def vector_bits(triple: str, features: frozenset[str]) -> int:
    """Return the width of a vector register [bit].

    Parameters
    ----------
    triple : str
        LLVM's target triple.
    features : frozenset of str
        Names of the features that the processor has, without sign.
    """
    if "avx512f" in features:
        return 512
    if "avx" in features:
        return 256
    return 128 if triple.startswith(("x86_64", "i686", "aarch64", "arm64")) else 64


def _x86_64(name: str, level: str) -> Target:
    features = X86_64_LEVELS[level]
    triple = "x86_64-unknown-linux-gnu"
    return Target(
        name=name,
        kind="cpu",
        triple=triple,
        cpu=level,
        features=tuple(f"+{feature}" for feature in features),
        vector_bits=vector_bits(triple, frozenset(features)),
        cores=1,
        caches=TYPICAL_CACHES,
        scopes=CPU_SCOPES,
        limits=CPU_LIMITS,
    )


X86_64_AVX2 = _x86_64("x86-64-avx2", "x86-64-v3")
X86_64_SSE2 = _x86_64("x86-64-sse2", "x86-64")
