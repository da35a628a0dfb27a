"""Presets of CPUs, and the vector extensions from which their vector registers follow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType

from dlcompiler.target.model import CacheLevel, MemoryScope, Target

#: Both limits protect the process. For wider vectors, the compile time of LLVM 22 grows without
#: bound; and a kernel may run on threads whose stack size the compiler does not choose.
CPU_LIMITS = MappingProxyType({"max_lanes": 64, "max_stack_bytes": 64 * 1024})

#: What the generator of LLVM IR supports on every processor.
LLVM_EMITS = frozenset({"vectors", "prefetch", "fma_tile", "dot4", "bits"})

CPU_SCOPES = (
    MemoryScope("global", rank=0, capacity=None, alignment=64),
    MemoryScope("local", rank=3, capacity=CPU_LIMITS["max_stack_bytes"], alignment=64),
)

#: Caches of typical desktop cores, used if they cannot be read.
#: Source: Intel 64 and IA-32 Architectures Optimization Reference Manual (248966), Haswell.
TYPICAL_CACHES = (
    CacheLevel("L1d", 32 * 1024, line=64, shared_by=1, ways=8),
    CacheLevel("L2", 256 * 1024, line=64, shared_by=1, ways=8),
    CacheLevel("L3", 8 * 1024 * 1024, line=64, shared_by=4, ways=16),
)

_SSE2 = ("sse", "sse2")
_AVX2 = (
    *_SSE2,
    *("sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16", "sahf"),
    *("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"),
)
_AVX512 = (*_AVX2, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")

#: Micro-architecture level of x86-64 -> features that code for it may use.
#: Source: x86-64 psABI, section 3.1.1, table 3.1.
X86_64_LEVELS = MappingProxyType(
    {
        "x86-64": _SSE2,
        "x86-64-v2": _AVX2[: _AVX2.index("avx")],
        "x86-64-v3": _AVX2,
        "x86-64-v4": _AVX512,
    }
)


@dataclass(frozen=True, slots=True)
class VectorExtension:
    """The vector instructions of a family of processors."""

    name: str
    families: tuple[str, ...]
    """Prefixes of the target triples of these processors."""
    feature: str
    """LLVM's name of the feature."""
    bits: int
    """Width of a register [bit]."""
    registers: int
    """Number of registers of one thread; [1]."""


_X86, _AARCH64 = ("x86_64", "i686"), ("aarch64", "arm64")

#: The best of each family first. RVV: the smallest register length that the extension V allows;
#: processors with longer registers run the same code. WebAssembly has no registers; the machines
#: that run it have 16 or more.
#: Source: Intel SDM vol. 1, ch. 10-15; Arm ARM (DDI 0487 A1.4, DDI 0406 A2.6); RISC-V "V" 1.0,
#: 18.3; WebAssembly 2.0.
VECTOR_EXTENSIONS = (
    VectorExtension("AVX-512", _X86, "avx512f", 512, 32),
    VectorExtension("AVX2", _X86, "avx2", 256, 16),
    VectorExtension("AVX", _X86, "avx", 256, 16),
    VectorExtension("SSE", _X86, "sse2", 128, 16),
    VectorExtension("NEON", _AARCH64, "neon", 128, 32),
    VectorExtension("NEON", ("arm", "thumb"), "neon", 128, 16),
    VectorExtension("RVV", ("riscv",), "v", 128, 32),
    VectorExtension("SIMD128", ("wasm",), "simd128", 128, 16),
)
NO_VECTORS = VectorExtension("none", (), "", 64, 16)


def vector_extension(triple: str, features: frozenset[str]) -> VectorExtension:
    """Return the best vector extension of a processor.

    Parameters
    ----------
    triple : str
        LLVM's target triple.
    features : frozenset of str
        Names of the features that the processor has, without sign.
    """
    # Every processor of these two families has it, even if the list of features does not say so.
    implied = frozenset({"sse2", "neon"} if triple.startswith(("x86_64", *_AARCH64)) else ())
    found = (
        extension
        for extension in VECTOR_EXTENSIONS
        if triple.startswith(extension.families) and extension.feature in features | implied
    )
    return next(found, NO_VECTORS)


def cpu_target(
    name: str,
    triple: str,
    cpu: str,
    features: tuple[str, ...],
    *,
    cores: int = 1,
    caches: tuple[CacheLevel, ...] = TYPICAL_CACHES,
) -> Target:
    """Return the target of a CPU; its vector registers follow from its features.

    Parameters
    ----------
    name : str
        Name in the registry, or chosen by the user.
    triple, cpu : str
        LLVM's target triple, and LLVM's name of the processor.
    features : tuple of str
        Each ``"+name"`` or ``"-name"``.
    cores : int
        Number of threads of a parallel loop by default.
    caches : tuple of CacheLevel
        Data caches, nearest first.
    """
    vectors = vector_extension(triple, frozenset(f[1:] for f in features if f.startswith("+")))
    return Target(
        name=name,
        device="cpu",
        language="llvm",
        triple=triple,
        cpu=cpu,
        features=features,
        vector_extension=vectors.name,
        vector_bits=vectors.bits,
        vector_registers=vectors.registers,
        cores=cores,
        caches=caches,
        scopes=CPU_SCOPES,
        emits=LLVM_EMITS,
        limits=CPU_LIMITS,
    )


def _on(*features: str) -> tuple[str, ...]:
    return tuple(f"+{feature}" for feature in features)


def _x86_64(name: str, level: str) -> Target:
    return cpu_target(name, "x86_64-unknown-linux-gnu", level, _on(*X86_64_LEVELS[level]))


X86_64_SSE2 = _x86_64("x86-64-sse2", "x86-64")
X86_64_SSE4 = _x86_64("x86-64-sse4", "x86-64-v2")
X86_64_AVX2 = _x86_64("x86-64-avx2", "x86-64-v3")
X86_64_AVX512 = _x86_64("x86-64-avx512", "x86-64-v4")

_LINUX_AARCH64 = "aarch64-unknown-linux-gnu"

AARCH64 = cpu_target("aarch64", _LINUX_AARCH64, "generic", _on("fp-armv8", "neon"))

#: Source: Arm Cortex-A53 TRM (DDI 0500J), sections 1.1, 2.1, 6.1, 7.1; the sizes of Broadcom's
#: BCM2837.
CORTEX_A53 = cpu_target(
    "cortex-a53",
    _LINUX_AARCH64,
    "cortex-a53",
    _on("fp-armv8", "neon", "crc"),
    cores=4,
    caches=(
        CacheLevel("L1d", 32 * 1024, line=64, shared_by=1, ways=4),
        CacheLevel("L2", 512 * 1024, line=64, shared_by=4, ways=16),
    ),
)

#: NEON and multiply-add, as on a Cortex-A7 and later.
#: Source: Arm ARM v7-A (DDI 0406C), A2.6.2; Cortex-A7 TRM (DDI 0464F), 2.1, 6.1, 7.1.
ARMV7 = cpu_target(
    "armv7",
    "armv7-unknown-linux-gnueabihf",
    "generic",
    _on("v7", "vfp4", "neon", "thumb2"),
    caches=(
        CacheLevel("L1d", 32 * 1024, line=64, shared_by=1, ways=4),
        CacheLevel("L2", 512 * 1024, line=64, shared_by=4, ways=8),
    ),
)

RISCV64 = cpu_target(
    "riscv64",
    "riscv64-unknown-linux-gnu",
    "generic-rv64",
    _on("m", "a", "f", "d", "c", "v", "zvl128b"),
)

WASM32 = cpu_target("wasm32", "wasm32-unknown-unknown", "generic", _on("simd128"))

#: C source for any processor: the machine that compiles it is not known.
C99 = replace(cpu_target("c", "", "", ()), language="c", runs_on="c compiler", emits=frozenset())
