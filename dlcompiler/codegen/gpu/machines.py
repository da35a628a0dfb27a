"""Tables of the machines for which LLVM writes the assembly of kernels: PTX and AMDGCN."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from dlcompiler.codegen.gpu.nvvm import REGISTRY, SHUFFLES
from dlcompiler.target.gpus import ASYNC_COPIES, FIXED_SHARED_BYTES


@dataclass(frozen=True)
class Machine:
    """A family of GPUs that LLVM generates code for."""

    name: str
    """Name in messages."""
    language: str
    """Name of the generated text: see `Source.language`."""
    triple: str
    """LLVM's target triple."""
    cpu: str
    """LLVM's name of the processor, for targets that name none of this family."""
    kernel: str
    """LLVM's calling convention of kernels."""
    indices: Mapping[str, str]
    """Thread axis -> the intrinsic that returns the index along it, an ``i32``."""
    barrier: tuple[str, ...]
    """Instructions in which each thread of a block waits for all."""
    barrier_intrinsic: tuple[str, str]
    """The intrinsic among them, and its parameters."""
    size: str
    """Attributes of a kernel with blocks of ``{x}`` by ``{y}`` by ``{z}`` threads, ``{threads}``
    together."""
    array_space: int = 0
    """Address space of the arrays of a call, in the parameters of kernels."""
    shared_space: int = 3
    """Address space of memory that a block shares."""
    most_shared_bytes: int | None = None
    """Shared memory that a kernel may declare [byte]; if it needs more, its launch adds all."""
    stack_space: int = 0
    """Address space of the memory of a thread."""
    rounds_to_bfloat16: tuple[str, ...] = ()
    """Beginnings of the names of processors with an instruction for that."""
    intrinsics: frozenset[str] = frozenset()
    """The emitters of `codegen.gpu.nvvm`, and `ASYNC_COPIES`; a processor may lack some."""
    always: frozenset[str] = frozenset()
    """What all processors of the family have beside these."""
    features: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Beginning of the name of a processor -> features of the language, by LLVM's names."""
    emission: str = "LineTablesOnly"
    """Which debug information LLVM writes."""


def _indices(block: str, thread: str) -> Mapping[str, str]:
    return MappingProxyType(
        {
            f"{level}Idx.{axis}": f"llvm.{name}.{axis}"
            for level, name in (("block", block), ("thread", thread))
            for axis in "xyz"
        }
    )


#: Source: LLVM 22, User Guide for NVPTX Back-end (kernel metadata, address spaces, special
#: registers, barriers); PTX ISA 8.7, section 9.7.9.22 (``cvt.rn.bf16.f32`` needs sm_80). The
#: instruction ``shfl.sync`` needs PTX 6.0, which LLVM writes for processors from sm_70 on.
NVPTX = Machine(
    name="PTX",
    language="ptx",
    triple="nvptx64-nvidia-cuda",
    cpu="sm_52",
    kernel="ptx_kernel",
    indices=_indices("nvvm.read.ptx.sreg.ctaid", "nvvm.read.ptx.sreg.tid"),
    barrier=("call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)",),
    barrier_intrinsic=("llvm.nvvm.barrier.cta.sync.aligned.all", "i32"),
    size='"nvvm.reqntid"="{x},{y},{z}"',
    most_shared_bytes=FIXED_SHARED_BYTES,
    rounds_to_bfloat16=("sm_8", "sm_9", "sm_1"),
    intrinsics=frozenset({*REGISTRY, ASYNC_COPIES}),
    always=frozenset({SHUFFLES}),
    features=MappingProxyType(dict.fromkeys(("sm_5", "sm_6"), ("+ptx60",))),
    emission="DebugDirectivesOnly",
)

#: Source: LLVM 22, User Guide for AMDGPU Backend (address spaces, memory model, function
#: attributes).
AMDGPU = Machine(
    name="AMDGCN assembly",
    language="amdgcn",
    triple="amdgcn-amd-amdhsa",
    cpu="gfx90a",
    kernel="amdgpu_kernel",
    indices=_indices("amdgcn.workgroup.id", "amdgcn.workitem.id"),
    barrier=(
        'fence syncscope("workgroup") release',
        "call void @llvm.amdgcn.s.barrier()",
        'fence syncscope("workgroup") acquire',
    ),
    barrier_intrinsic=("llvm.amdgcn.s.barrier", ""),
    size='"amdgpu-flat-work-group-size"="{threads},{threads}" "uniform-work-group-size"="true"',
    array_space=1,
    stack_space=5,
)
