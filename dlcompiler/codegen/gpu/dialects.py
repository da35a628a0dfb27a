"""Tables of the languages for GPUs: how each writes types, functions, threads and memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from dlcompiler.codegen.c.dialect import C99, Dialect
from dlcompiler.errors import TargetError
from dlcompiler.ir import THREADS
from dlcompiler.target.gpus import FIXED_SHARED_BYTES

VECTOR_LANES = (2, 4)
"""Lanes of the vector types that all languages here have."""
VECTOR_BYTES = 16
"""Most bytes that a thread loads or stores at once."""
WORDS = {4: "", 8: "uint2", 16: "uint4"}
"""Size of elements that are copied as they are [byte] -> the vector type for it, if it is more than
one word."""
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True)
class DeviceDialect(Dialect):
    """A language of the C family in which kernels of a GPU are written."""

    language: str = ""
    """Name of the generated text: see `Source.language`."""
    kernel: str = ""
    """What stands before the name of a kernel; ``{threads}`` is their number, ``{x}``, ``{y}`` and
    ``{z}`` those along each axis."""
    array_space: str = ""
    """Qualifier of pointers to the arrays of the call, followed by a space."""
    shared_space: str = ""
    """Qualifier of pointers to memory that a block shares, followed by a space."""
    private_space: str = ""
    """Qualifier of pointers to memory of a thread, followed by a space."""
    restrict: str = "restrict"
    """Qualifier of a pointer to memory that no other pointer reaches."""
    shared: str = ""
    """Qualifier of memory that the threads of a block share."""
    added_shared: str = ""
    """Declaration in a kernel of the shared memory that its launch adds, elements of 16 bytes."""
    added_parameter: str = ""
    """The same as a parameter, which then stands last of the program's."""
    most_shared_bytes: int | None = None
    """Shared memory that a kernel may declare [byte]; if it needs more, its launch adds all."""
    barrier: str = ""
    """Statement in which each thread of a block waits for all."""
    aligned: str = ""
    """What aligns an array in which vectors begin at multiples of ``{bytes}``, with a space."""
    axes: Mapping[str, str] = field(default_factory=dict)
    """Thread axis -> the index of this thread or block along it."""
    unroll: str = "#pragma unroll"
    """Directive before a loop that should be unrolled."""
    report: str = ""
    """Expression that stores ``{code}`` in the first half of ``status[0]`` if that is 0; its value
    is the old one. All GPUs are little-endian, and some have no atomic operations on 64 bits."""
    vectors: Mapping[str, str] = field(default_factory=dict)
    """Dtype -> its vector type without the number of lanes; of what is stored, see `stored`."""
    vector: str = ""
    """A vector of a ``{type}`` made of ``{lanes}``."""
    number: str = "{type} {name}"
    """A parameter that is a number."""
    place: str = ""
    """What follows a parameter; ``{place}`` is its place, from 0."""
    parameters: tuple[str, ...] = ()
    """Parameters of each kernel after those of the program."""
    shuffles: bool = False
    """Whether threads of a warp can read the registers of others: see `codegen.gpu.shuffles`."""
    copies_async: bool = False
    """Whether a thread can begin a copy and go on: see `codegen.gpu.async_copies`."""
    emits: frozenset[str] = frozenset()
    """Emitters of `codegen.gpu.intrinsics` that write this language for the processor. Calls of
    other intrinsics are written as the loops of their declarations."""
    preamble: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Patterns, and the lines at the start of a source in which one occurs."""
    lacks: tuple[tuple[str, str], ...] = ()
    """Patterns of code that the language does not have, each with the reason."""

    def preamble_of(self, code: str) -> list[str]:
        """Return the lines that stand before some code."""
        return [line for name, lines in self.preamble if re.search(name, code) for line in lines]

    def refuse(self, operation: str, code: str) -> None:
        """Refuse code that the language does not have.

        Raises
        ------
        TargetError
            A pattern of `lacks` occurs outside comments.
        """
        plain = _COMMENT.sub("", code)
        for pattern, because in self.lacks:
            if found := re.search(pattern, plain):
                raise TargetError(
                    operation, f"{self.name} cannot express it", got=found[0].rstrip("("),
                    because=because, hint="source('cuda') and source('opencl') can",
                )  # fmt: skip


_NAMES_OF_C = r"\b(u?int\d+_t|U?INT\d+_(MIN|MAX|C))\b"
_LIMITS = (
    "#define INT8_MIN (-128)", "#define INT8_MAX 127", "#define UINT8_MAX 255",
    "#define INT16_MIN (-32768)", "#define INT16_MAX 32767", "#define UINT16_MAX 65535",
    "#define INT32_MIN (-2147483647 - 1)", "#define INT32_MAX 2147483647",
    "#define UINT32_MAX 4294967295u", "#define INT64_MIN (-INT64_MAX - 1)",
)  # fmt: skip
_CUDA = (
    (
        _NAMES_OF_C,
        (
            "#ifdef __CUDACC_RTC__",
            "typedef signed char int8_t;", "typedef unsigned char uint8_t;",
            "typedef short int16_t;", "typedef unsigned short uint16_t;",
            "typedef int int32_t;", "typedef unsigned int uint32_t;",
            "typedef long long int64_t;", "typedef unsigned long long uint64_t;",
            *_LIMITS,
            "#define INT64_MAX 9223372036854775807LL",
            "#define UINT64_MAX 18446744073709551615ULL",
            "#define INT64_C(x) x##LL", "#define UINT64_C(x) x##ULL", "#define UINT32_C(x) x##u",
            "#else", "#include <stdint.h>", "#endif",
        ),
    ),
    (
        r"\bINFINITY\b",
        ("#ifndef INFINITY", "#define INFINITY __int_as_float(0x7f800000)", "#endif"),
    ),
    (r"\bNAN\b", ("#ifndef NAN", "#define NAN __int_as_float(0x7fffffff)", "#endif")),
)  # fmt: skip
_HIP = (
    (
        r"^",
        (
            "#ifndef __HIPCC_RTC__",
            "#include <hip/hip_runtime.h>", "#include <stdint.h>",
            "#endif",
        ),
    ),
    (
        _NAMES_OF_C,
        (
            "#ifdef __HIPCC_RTC__",
            "typedef signed char int8_t;", "typedef unsigned char uint8_t;",
            "typedef short int16_t;", "typedef unsigned short uint16_t;",
            "typedef int int32_t;", "typedef unsigned int uint32_t;",
            *_LIMITS,
            "#define INT64_MAX 9223372036854775807LL",
            "#define UINT64_MAX 18446744073709551615ULL",
            "#define INT64_C(x) x##LL", "#define UINT64_C(x) x##ULL", "#define UINT32_C(x) x##u",
            "#endif",
        ),
    ),
)  # fmt: skip
_METAL = (
    (r"^", ("#include <metal_stdlib>", "using namespace metal;")),
    (
        _NAMES_OF_C,
        (
            *_LIMITS,
            "#define INT64_MAX 9223372036854775807L",
            "#define UINT64_MAX 18446744073709551615UL",
            "#define INT64_C(x) x##L", "#define UINT64_C(x) x##UL", "#define UINT32_C(x) x##u",
        ),
    ),
    (
        r"\bdlc_report\(",
        (
            "/* Stores a code where 0 is, and returns what was there. */",
            "static inline int dlc_report(device atomic_int *status, int code)",
            "{",
            "    int old = 0;",
            "    while (old == 0 && !atomic_compare_exchange_weak_explicit(",
            "            status, &old, code, memory_order_relaxed, memory_order_relaxed)) {",
            "    }",
            "    return old;",
            "}",
        ),
    ),
)  # fmt: skip
_OPENCL = (
    (
        _NAMES_OF_C,
        (
            "typedef char int8_t;", "typedef uchar uint8_t;", "typedef short int16_t;",
            "typedef ushort uint16_t;", "typedef int int32_t;", "typedef uint uint32_t;",
            "typedef long int64_t;", "typedef ulong uint64_t;",
            *_LIMITS,
            "#define INT64_MAX LONG_MAX", "#define UINT64_MAX ULONG_MAX",
            "#define INT64_C(x) x##L", "#define UINT64_C(x) x##UL", "#define UINT32_C(x) x##u",
        ),
    ),
)  # fmt: skip
_CUDA_TYPES = MappingProxyType(
    {
        **C99.types,
        "int8": "signed char", "uint8": "unsigned char", "int16": "short",
        "uint16": "unsigned short", "int32": "int", "uint32": "unsigned int",
        "int64": "long long", "uint64": "unsigned long long", "index": "long long",
    }
)  # fmt: skip
_CUDA_STORED = MappingProxyType(
    {"float16": "unsigned short", "bfloat16": "unsigned short", "bool": "unsigned char"}
)
_OPENCL_TYPES = MappingProxyType(
    {
        **C99.types,
        "int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort", "int32": "int",
        "uint32": "uint", "int64": "long", "uint64": "ulong", "index": "long",
    }
)  # fmt: skip
_OPENCL_STORED = MappingProxyType({"float16": "ushort", "bfloat16": "ushort", "bool": "uchar"})

_CUDA_NAMES = """
holds threadIdx blockIdx blockDim gridDim warpSize __syncthreads atomicCAS min max int8_t uint8_t
int2 int4 float2 float4 double2 uint2 uint4 char2 char4 short2 short4 ushort2 ushort4 half dim3
"""
_OPENCL_NAMES = """
holds kernel global local constant private read_only write_only read_write uniform pipe half uchar
ushort uint ulong size_t ptrdiff_t intptr_t uintptr_t event_t sampler_t image1d_t image2d_t
image3d_t quad complex imaginary generic bool2 bool4 barrier get_group_id get_local_id
get_global_id atomic_cmpxchg as_uint as_float vload_half vstore_half_rte char2 char4 uchar2 uchar4
short2 short4 ushort2 ushort4 int2 int4 uint2 uint4 long2 long4 ulong2 ulong4 float2 float4
double2 double4 min max mix step clamp sign dot cross select any all shuffle
"""

CUDA = DeviceDialect(
    name="CUDA C",
    language="cuda",
    types=_CUDA_TYPES,
    stored=_CUDA_STORED,
    functions=C99.functions,
    helper="static __device__ __forceinline__",
    bits=MappingProxyType(
        {
            "float": "{to} = __uint_as_float({value});",
            "uint32_t": "{to} = __float_as_uint({value});",
            "double": "{to} = __longlong_as_double((long long){value});",
            "uint64_t": "{to} = (uint64_t)__double_as_longlong({value});",
        }
    ),
    helpers=MappingProxyType(
        {
            "to_f32 f16": (
                "    float value;\n"
                '    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(h));\n'
                "    return value;"
            ),
            "from_f32 f16": (
                "    uint16_t h;\n"
                '    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(value));\n'
                "    return h;"
            ),
        }
    ),
    reserved=frozenset(_CUDA_NAMES.split()),
    kernel='extern "C" __global__ void __launch_bounds__({threads})',
    restrict="__restrict__",
    shared="__shared__",
    added_shared="extern __shared__ uint4 {name}[];",
    most_shared_bytes=FIXED_SHARED_BYTES,
    barrier="__syncthreads();",
    aligned="__align__({bytes}) ",
    shuffles=True,
    axes=MappingProxyType({tag: tag for tag in THREADS if tag != "vthread"}),
    report="atomicCAS((int *)status, 0, {code})",
    vectors=MappingProxyType(
        {
            "int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort", "int32": "int",
            "uint32": "uint", "int64": "longlong", "uint64": "ulonglong", "float32": "float",
            "float64": "double", "float16": "ushort", "bfloat16": "ushort",
        }
    ),
    vector="make_{type}({lanes})",
    preamble=_CUDA,
)  # fmt: skip

OPENCL = DeviceDialect(
    name="OpenCL C",
    language="opencl",
    types=_OPENCL_TYPES,
    stored=_OPENCL_STORED,
    functions=C99.functions,
    helper="static inline",
    suffix="",
    bits=MappingProxyType(
        {
            "float": "{to} = as_float({value});",
            "uint32_t": "{to} = as_uint({value});",
            "double": "{to} = as_double({value});",
            "uint64_t": "{to} = as_ulong({value});",
        }
    ),
    helpers=MappingProxyType(
        {
            "to_f32 f16": "    return vload_half(0, (const __private half *)&h);",
            "from_f32 f16": (
                "    uint16_t h;\n"
                "    vstore_half_rte(value, 0, (__private half *)&h);\n"
                "    return h;"
            ),
        }
    ),
    reserved=frozenset(_OPENCL_NAMES.split()),
    kernel="__kernel __attribute__((reqd_work_group_size({x}, {y}, {z}))) void",
    array_space="__global ",
    shared_space="__local ",
    shared="__local",
    added_parameter="__local uint4 *{name}",
    barrier="barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    aligned="__attribute__((aligned({bytes}))) ",
    axes=MappingProxyType(
        {
            f"{level}Idx.{axis}": f"get_{name}_id({number})"
            for level, name in (("block", "group"), ("thread", "local"))
            for number, axis in enumerate("xyz")
        }
    ),
    report="atomic_cmpxchg((volatile __global int *)status, 0, {code})",
    vectors=MappingProxyType(
        {
            "int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort", "int32": "int",
            "uint32": "uint", "int64": "long", "uint64": "ulong", "float32": "float",
            "float64": "double", "float16": "ushort", "bfloat16": "ushort",
        }
    ),
    vector="({type})({lanes})",
    preamble=_OPENCL,
)  # fmt: skip

HIP = replace(
    CUDA,
    name="HIP",
    language="hip",
    most_shared_bytes=None,
    shuffles=False,
    helpers=MappingProxyType(
        {
            "to_f32 f16": "    return (float)__builtin_bit_cast(_Float16, h);",
            "from_f32 f16": "    return __builtin_bit_cast(uint16_t, (_Float16)value);",
        }
    ),
    reserved=CUDA.reserved | {"_Float16", "hipThreadIdx_x", "hipBlockIdx_x"},
    preamble=_HIP,
)
"""The language of AMD's toolkit: CUDA C with another header and a type for float16."""

_METAL_NAMES = """
holds kernel vertex fragment device constant thread threadgroup threadgroup_imageblock ray_data
object_data mesh half bfloat uchar ushort uint ulong size_t ptrdiff_t packed texture sampler array
access metal simd quad vec matrix threadIdx blockIdx threadgroup_barrier mem_flags as_type
atomic_int atomic_uint memory_order_relaxed min max mix step clamp sign dot cross select any all
bool2 bool4 char2 char4 uchar2 uchar4 short2 short4 ushort2 ushort4 int2 int4 uint2 uint3 uint4
long2 long4 ulong2 ulong4 half2 half4 float2 float4
"""
METAL = replace(
    OPENCL,
    name="Metal",
    language="metal",
    bits=MappingProxyType(
        {
            "float": "{to} = as_type<float>({value});",
            "uint32_t": "{to} = as_type<uint>({value});",
            "double": "{to} = as_type<double>({value});",
            "uint64_t": "{to} = as_type<ulong>({value});",
        }
    ),
    helpers=MappingProxyType(
        {
            "to_f32 f16": "    return float(as_type<half>(h));",
            "from_f32 f16": "    return as_type<ushort>(half(value));",
        }
    ),
    reserved=frozenset(_METAL_NAMES.split()),
    kernel="[[kernel, max_total_threads_per_threadgroup({threads})]] void",
    array_space="device ",
    shared_space="threadgroup ",
    private_space="thread ",
    restrict="__restrict",
    shared="threadgroup",
    added_parameter="threadgroup uint4 *{name} [[threadgroup(0)]]",
    barrier="threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);",
    axes=CUDA.axes,
    report="dlc_report((device atomic_int *)status, {code})",
    vectors=MappingProxyType(
        {name: type_ for name, type_ in OPENCL.vectors.items() if name != "float64"}
    ),
    vector="{type}({lanes})",
    number="constant {type} &{name}",
    place=" [[buffer({place})]]",
    parameters=(
        "uint3 blockIdx [[threadgroup_position_in_grid]]",
        "uint3 threadIdx [[thread_position_in_threadgroup]]",
    ),
    preamble=_METAL,
    lacks=(
        (r"\bdouble\b", "GPUs of Apple have no floats of 64 bits"),
        (r"\b(erf|hypot|log1p|nextafter)\(", "its library has no such function"),
    ),
)
"""Apple's language, C++ with address spaces. **Source:** Metal Shading Language Specification 3.2,
chapters 2 (types), 4 (address spaces), 5 (attributes of kernels) and 6 (functions)."""
