"""Run generated CUDA C without a GPU: as C++, with a thread of this machine for each of a block's.

Instructions that C++ lacks are functions here, written from their description in NVIDIA's PTX ISA
and not from the emitters, so that each judges the other. A shuffle or a barrier that some threads
do not reach never ends: the process is stopped after a while.
"""

import re
import shutil
import subprocess

import numpy as np
import pytest

SECONDS = 120
"""Until a program that does not end is stopped; [s]."""

HEAD = """
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#define __global__
#define __device__
#define __forceinline__ inline
#define __restrict__
#define __launch_bounds__(n)
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
struct Index { int x, y, z; };
static thread_local Index threadIdx, blockIdx;
static thread_local int rank;  // number of the thread in its block
static pthread_barrier_t block, warps[32];
static unsigned char slots[1024][64];

#define __syncthreads() pthread_barrier_wait(&block)
static void together() { pthread_barrier_wait(&warps[rank / 32]); }

template <class T> T of_lane(T value, int lane)  // the value of another thread of the warp
{
    memcpy(slots[rank], &value, sizeof value);
    together();
    T other;
    memcpy(&other, slots[rank / 32 * 32 + lane], sizeof other);
    together();
    return other;
}
template <class T> T __shfl_sync(unsigned, T value, int lane, int width)
{
    int own = rank % 32;
    return of_lane(value, own / width * width + (lane & (width - 1)));
}
template <class T> T __shfl_down_sync(unsigned, T value, int delta, int width)
{
    int own = rank % 32;
    return of_lane(value, own % width + delta < width ? own + delta : own);
}
static float __int_as_float(int bits) { float x; memcpy(&x, &bits, 4); return x; }
static float __uint_as_float(unsigned bits) { return __int_as_float(bits); }
static unsigned __float_as_uint(float x) { unsigned bits; memcpy(&bits, &x, 4); return bits; }
static thread_local struct { void *to; const void *from; size_t bytes; } begun[4096];
static thread_local int copies;
static void begin(void *to, const void *from, size_t bytes)
{
    if (((uintptr_t)to | (uintptr_t)from) % bytes) abort();
    memset(to, 0xa5, bytes);  // what reads it now is wrong
    begun[copies++] = {to, from, bytes};
}
struct Bfloat { uint16_t bits; operator float() { return __uint_as_float(bits << 16); } };
struct Tfloat { unsigned bits; operator float() { return __uint_as_float(bits & 0xffffe000); } };
#define VECTORS(T, name) \\
    struct alignas(2 * sizeof(T)) name##2 { T x, y; }; \\
    struct alignas(4 * sizeof(T)) name##4 { T x, y, z, w; }; \\
    static name##2 make_##name##2(T x, T y) { return {x, y}; } \\
    static name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
VECTORS(float, float)
VECTORS(double, double)
VECTORS(signed char, char)
VECTORS(unsigned short, ushort)
VECTORS(int, int)
VECTORS(unsigned, uint)
"""

INSTRUCTIONS = {
    "dlc_to_f32_f16": "float {name}(uint16_t h) { _Float16 x; memcpy(&x, &h, 2); return x; }",
    "dlc_from_f32_f16": (
        "uint16_t {name}(float f) { _Float16 x = f; uint16_t h; memcpy(&h, &x, 2); return h; }"
    ),
    **{
        f"dlc_copy_async_{size}": (
            f"void {{name}}(void *to, const void *from) {{ begin(to, from, {size}); }}"
        )
        for size in (4, 8, 16)
    },
    "dlc_wait_for_copies": (
        "void {name}(void) { while (copies) "
        "{ --copies; memcpy(begun[copies].to, begun[copies].from, begun[copies].bytes); } }"
    ),
    **{
        f"dlc_load_matrices_{count}{across}{kind}": f"""
void {{name}}({"float" if kind else "unsigned"} *to, const void *row)
{{
    int t = rank % 32;
    const unsigned char *rows[32];
    for (int lane = 0; lane < 32; ++lane) rows[lane] = of_lane((const unsigned char *)row, lane);
    for (int lane = 0; lane < {8 * count}; ++lane) if ((uintptr_t)rows[lane] % 16) abort();
    for (int m = 0; m < {count}; ++m)
        for (int half = 0; half < 2; ++half)  // two elements of 16 bits, as the PTX ISA shows
            memcpy((char *)&to[m] + 2 * half, {
            "rows[8 * m + t % 4 * 2 + half] + t / 4 * 2"
            if across
            else "rows[8 * m + t / 4] + t % 4 * 4 + half * 2"
        }, 2);
}}"""
        for count in (2, 4)
        for across in ("", "_transposed")
        for kind in ("", "_float")
    },
    "dlc_to_tf32": (  # halfway between neighbours of 10 bits: away from 0
        "unsigned {name}(float x) { if (!(fabsf(x) < INFINITY)) return __float_as_uint(x); "
        "int e; frexpf(x, &e); float unit = ldexpf(1, (e < -125 ? -125 : e) - 11); "
        "return __float_as_uint(roundf(x / unit) * unit); }"
    ),
    "dlc_dot4_u8s8": (
        "int {name}(int x, int w, int c) { for (int n = 0; n < 32; n += 8) "
        "c += (int)(uint8_t)(x >> n) * (int8_t)(w >> n); return c; }"
    ),
    "dlc_dot4_s8s8": (
        "int {name}(int x, int w, int c) { for (int n = 0; n < 32; n += 8) "
        "c += (int)(int8_t)(x >> n) * (int8_t)(w >> n); return c; }"
    ),
}
"""Function of a generated source that consists of assembly -> the same in C++."""

for _kind, _dtype, _sum, _deep in (
    ("f16", "_Float16", "float", 16), ("bf16", "Bfloat", "float", 16),
    ("tf32", "Tfloat", "float", 8), ("s8", "int8_t", "int", 32),
):  # fmt: skip
    INSTRUCTIONS[f"dlc_mma_{_kind}"] = f"""
void {{name}}({_sum} *c, const unsigned *a, const unsigned *b)
{{
    enum {{ K = {_deep}, P = K / 8 }};
    struct {{ unsigned a[4], b[2]; }} given, all[32];
    memcpy(given.a, a, 16);
    memcpy(given.b, b, 8);
    for (int lane = 0; lane < 32; ++lane) all[lane] = of_lane(given, lane);
    float A[16][K], B[K][8];
    for (int lane = 0; lane < 32; ++lane) {{
        int g = lane >> 2, t = lane % 4;
        {_dtype} x[4 * P], y[2 * P];
        memcpy(x, all[lane].a, 16);
        memcpy(y, all[lane].b, 8);
        for (int i = 0; i < 4 * P; ++i)  // as the tables of the PTX ISA have it
            A[i % (2 * P) < P ? g : g + 8][t * P + i % P + (i < 2 * P ? 0 : 4 * P)] = (float)x[i];
        for (int i = 0; i < 2 * P; ++i)
            B[t * P + i % P + (i < P ? 0 : 4 * P)][g] = (float)y[i];
    }}
    int g = (rank % 32) >> 2, t = rank % 4;
    for (int i = 0; i < 4; ++i)
        for (int k = 0; k < K; ++k)
            c[i] += A[i < 2 ? g : g + 8][k] * B[k][t * 2 + i % 2];
}}
"""

MAIN = """
static void *thread(void *number)
{
    rank = (int)(intptr_t)number;
    threadIdx = {rank % <x>, rank / <x> % <y>, rank / <x> / <y>};
    for (int b = 0; b < <bx> * <by> * <bz>; ++b) {
        blockIdx = {b % <bx>, b / <bx> % <by>, b / <bx> / <by>};
        <kernel>(<arguments>);
        pthread_barrier_wait(&block);
    }
    return NULL;
}
int main()
{
    <read>
    int threads = <x> * <y> * <z>;
    pthread_t running[1024];
    pthread_barrier_init(&block, NULL, threads);
    for (int n = 0; n < threads; n += 32)
        pthread_barrier_init(&warps[n / 32], NULL, threads - n < 32 ? threads - n : 32);
    for (int n = 0; n < threads; ++n)
        pthread_create(&running[n], NULL, thread, (void *)(intptr_t)n);
    for (int n = 0; n < threads; ++n) pthread_join(running[n], NULL);
    <write>
}
"""


def run(text, arrays, folder):
    """Run the one kernel of a source on arrays, which it changes.

    Parameters
    ----------
    text : str
        CUDA C with one kernel, whose launch has a fixed size.
    arrays : list of ndarray
        One for each parameter of the kernel.
    folder : Path
        Where the program is put.
    """
    if shutil.which("g++") is None:
        pytest.skip("no C++ compiler")
    (launch,) = re.findall(r"/\* launch: (.*) \*/", text)
    size = {axis: int(count) for axis, count in re.findall(r"(\w+Idx\.[xyz]) (\d+)", launch)}
    (kernel,) = re.findall(r"__launch_bounds__\(\d+\) (\w+)\(", text)
    code = HEAD + _without_assembly(text).replace('extern "C" ', "") + "<memory>" + MAIN
    names = [f"a{number}" for number in range(len(arrays))]
    (parameters,) = re.findall(rf"\b{kernel}\((.*)\)\n", text)
    types = [each.rpartition("*")[0] for each in parameters.split(", ")]
    memory = "".join(
        f"alignas(256) static char {n}[{a.nbytes}];\n" for n, a in zip(names, arrays, strict=True)
    )
    known = {
        "read": "\n    ".join(
            f"if (fread({n}, 1, {a.nbytes}, stdin)) {{}}"
            for n, a in zip(names, arrays, strict=True)
        ),
        "write": " ".join(
            f"fwrite({n}, 1, {a.nbytes}, stdout);" for n, a in zip(names, arrays, strict=True)
        ),
        "arguments": ", ".join(f"({t}*){n}" for t, n in zip(types, names, strict=True)),
        "kernel": kernel,
        "memory": "\n" + memory,
        **{axis: str(size.get(f"threadIdx.{axis}", 1)) for axis in "xyz"},
        **{f"b{axis}": str(size.get(f"blockIdx.{axis}", 1)) for axis in "xyz"},
    }
    for name, value in known.items():
        code = code.replace(f"<{name}>", value)
    source, program = folder / "kernel.cpp", folder / "kernel"
    source.write_text(code)
    compiler = ["g++", "-std=c++17", "-O0", "-ffp-contract=off", "-w", "-pthread"]
    subprocess.run([*compiler, "-o", str(program), str(source)], check=True)
    given = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)
    done = subprocess.run([program], input=given, stdout=-1, check=True, timeout=SECONDS).stdout
    for array in arrays:
        array[...] = np.frombuffer(done[: array.nbytes], array.dtype).reshape(array.shape)
        done = done[array.nbytes :]


def _without_assembly(text):
    """Return a source whose functions of assembly are written in C++."""

    def replaced(found):
        if "asm(" not in found[0] and "asm volatile(" not in found[0]:
            return found[0]
        return "static " + INSTRUCTIONS[found[1]].replace("{name}", found[1])

    functions = r"static __device__ [^\n]*?(\w+)\([^)]*\)\n\{\n.*?\n\}"
    return re.sub(functions, replaced, text, flags=re.S)
