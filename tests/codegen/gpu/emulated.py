"""Run the LLVM IR of a GPU's kernels on this processor, where each thread is a coroutine.

The text is the one that PTX is generated from. Only what the machine provides is replaced: the
registers that hold the indices of a thread, the barrier, the address space of shared memory, and
instructions of a warp. A thread runs to its next barrier, or to the next instruction of its warp;
then the next thread runs. Instructions are functions in C here, written from their description in
NVIDIA's PTX ISA and not from the emitters, so that each judges the other.
"""

import ctypes
import re
import subprocess
from functools import cache

import numpy as np

from dlcompiler import dtypes
from dlcompiler.codegen.gpu.assembly import llvm_module
from dlcompiler.codegen.gpu.machines import NVPTX
from dlcompiler.errors import MAX_VALUES
from dlcompiler.runtime import llvm
from dlcompiler.runtime.c_source import c_compiler
from dlcompiler.runtime.formulas import compiled
from dlcompiler.runtime.options import Options
from dlcompiler.target.detect import host

MOST_ARGUMENTS = 12
ADDED_BYTES = 1 << 16
"""Shared memory that a launch may add; [byte]."""
_RUNNER = """
#define _XOPEN_SOURCE 700
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
enum { STACK = 64 * 1024 };
typedef void kernel(%(types)s);
static kernel *run;
static long given[%(count)d];
static int block[3], thread[3];
static ucontext_t scheduler, *states;
static int now, *ended, *arrivals, all, moved;
static uint32_t given_words[1024][16];
int sreg_ctaid_x(void) { return block[0]; }
int sreg_ctaid_y(void) { return block[1]; }
int sreg_ctaid_z(void) { return block[2]; }
int sreg_tid_x(void) { return now %% thread[0]; }
int sreg_tid_y(void) { return now / thread[0] %% thread[1]; }
int sreg_tid_z(void) { return now / thread[0] / thread[1]; }
static void wait_for(int first, int end)
{
    int mine = ++arrivals[now], waits = 1;
    moved = 1;
    while (waits) {
        waits = 0;
        for (int n = first; n < end; ++n) waits |= arrivals[n] < mine;
        if (waits) swapcontext(&states[now], &scheduler);
    }
    moved = 1;
}
void wait_for_all(int barrier) { (void)barrier; wait_for(0, all); }
static void wait_for_warp(void)
{
    int first = now / 32 * 32;
    wait_for(first, first + 32 < all ? first + 32 : all);
}
static float as_float(uint32_t bits) { float x; memcpy(&x, &bits, 4); return x; }
static float of_half(uint32_t bits)
{
    _Float16 x; uint16_t half = bits; memcpy(&x, &half, 2); return x;
}
static float of_brain(uint32_t bits) { return as_float(bits << 16); }
static float of_byte(uint32_t bits) { return (int8_t)bits; }
static float of_tf32(uint32_t bits) { return as_float(bits & 0xffffe000); }
static void product(uint32_t *c, const uint32_t *own, int K, float (*number)(uint32_t), int is_int)
{
    int P = K / 8, bits = 32 / P, first = now / 32 * 32, g = now %% 32 / 4, t = now %% 4;
    memcpy(given_words[now], own, 24);
    wait_for_warp();
    for (int i = 0; i < 4; ++i) {
        int row = i < 2 ? g : g + 8, column = 2 * t + i %% 2;
        float sum = is_int ? (float)(int)c[i] : as_float(c[i]);
        for (int k = 0; k < K; ++k) {  /* who holds it, as the figures of the PTX ISA show */
            int within = k %% (4 * P), j = within %% P, upper = k >= 4 * P;
            const uint32_t *a = given_words[first + row %% 8 * 4 + within / P];
            const uint32_t *b = given_words[first + column * 4 + within / P];
            uint32_t x = a[row / 8 + 2 * upper], y = b[4 + upper];
            uint32_t mask = bits == 32 ? -1u : (1u << bits) - 1;
            sum += number(x >> j * bits & mask) * number(y >> j * bits & mask);
        }
        int whole = sum;
        memcpy(&c[i], is_int ? (void *)&whole : (void *)&sum, 4);
    }
    wait_for_warp();
}
void mma_f16(uint32_t *c, const uint32_t *f) { product(c, f, 16, of_half, 0); }
void mma_bf16(uint32_t *c, const uint32_t *f) { product(c, f, 16, of_brain, 0); }
void mma_tf32(uint32_t *c, const uint32_t *f) { product(c, f, 8, of_tf32, 0); }
void mma_s8(uint32_t *c, const uint32_t *f) { product(c, f, 32, of_byte, 1); }
static struct { char *to; const char *from; int size; } begun[1024][64];
static int copies[1024];
static void begin(char *to, const char *from, int size)
{
    if (((uintptr_t)to | (uintptr_t)from) %% size || copies[now] == 64) abort();
    memset(to, 0xa5, size);  /* what reads it now is wrong */
    begun[now][copies[now]].to = to;
    begun[now][copies[now]].from = from;
    begun[now][copies[now]++].size = size;
}
void copy_4(char *to, const char *from) { begin(to, from, 4); }
void copy_8(char *to, const char *from) { begin(to, from, 8); }
void copy_16(char *to, const char *from) { begin(to, from, 16); }
void wait_for_copies(void)
{
    for (; copies[now]; --copies[now]) {
        int n = copies[now] - 1;
        memcpy(begun[now][n].to, begun[now][n].from, begun[now][n].size);
    }
}
uint32_t shuffle(uint32_t mask, uint32_t value, int lane, int segment)
{
    int own = now %% 32, width = 32 - (segment >> 8);
    uint32_t other;
    if (!(mask >> own & 1)) abort();
    given_words[now][0] = value;
    wait_for_warp();
    other = given_words[now / 32 * 32 + own / width * width + (lane & (width - 1))][0];
    wait_for_warp();
    return other;
}
void load_matrices(uint32_t *to, const char *row, int count, int is_transposed)
{
    static const char *rows[1024];
    int first = now / 32 * 32, t = now %% 32;
    rows[now] = row;
    if ((uintptr_t)row %% 16 && t < 8 * count) abort();
    wait_for_warp();
    for (int m = 0; m < count; ++m)
        for (int half = 0; half < 2; ++half) {  /* elements of 16 bits, as the PTX ISA shows */
            int which = is_transposed ? t %% 4 * 2 + half : t / 4;
            int place = is_transposed ? t / 4 : t %% 4 * 2 + half;
            memcpy((char *)&to[m] + 2 * half, rows[first + 8 * m + which] + 2 * place, 2);
        }
    wait_for_warp();
}
uint32_t to_tf32(float x)
{
    uint32_t bits;
    int e;
    if (fabsf(x) < INFINITY) {  /* halves away from 0 */
        frexpf(x, &e);
        float unit = ldexpf(1, (e < -125 ? -125 : e) - 11);
        x = roundf(x / unit) * unit;
    }
    memcpy(&bits, &x, 4);
    return bits;
}
int dot4_s(int x, int w, int c)
{
    for (int n = 0; n < 32; n += 8) c += (int)(int8_t)(x >> n) * (int8_t)(w >> n);
    return c;
}
int dot4_u(int x, int w, int c)
{
    for (int n = 0; n < 32; n += 8) c += (int)(uint8_t)(x >> n) * (int8_t)(w >> n);
    return c;
}
static void whole(void)
{
    run(%(arguments)s);
    ended[now] = moved = 1;
    swapcontext(&states[now], &scheduler);
}
static int run_block(int count, char *stacks, int is_reversed)
{
    int left = count;
    for (int n = 0; n < count; ++n) {
        getcontext(&states[n]);
        states[n].uc_stack.ss_sp = stacks + (long)n * STACK;
        states[n].uc_stack.ss_size = STACK;
        makecontext(&states[n], whole, 0);
        ended[n] = arrivals[n] = 0;
    }
    for (moved = 1; moved && left > 0;) {
        moved = 0;
        for (int n = 0; n < count; ++n) {
            now = is_reversed ? count - 1 - n : n;
            if (ended[now]) continue;
            swapcontext(&scheduler, &states[now]);
            left -= ended[now];
        }
    }
    return left; /* not 0: some threads wait for others that have ended, or wait elsewhere */
}
int launch(
    kernel *function, const long *values, const int *blocks, const int *threads, int is_reversed)
{
    const int count = all = threads[0] * threads[1] * threads[2];
    char *stacks = malloc((long)count * STACK);
    int left = 0;
    run = function;
    for (int n = 0; n < %(count)d; ++n) given[n] = values[n];
    for (int n = 0; n < 3; ++n) thread[n] = threads[n];
    states = malloc(count * sizeof *states);
    ended = malloc(count * sizeof *ended);
    arrivals = malloc(count * sizeof *arrivals);
    for (block[2] = 0; block[2] < blocks[2]; ++block[2])
        for (block[1] = 0; block[1] < blocks[1]; ++block[1])
            for (block[0] = 0; block[0] < blocks[0] && !left; ++block[0])
                left = run_block(count, stacks, is_reversed);
    free(stacks);
    free(states);
    free(ended);
    free(arrivals);
    return left;
}
"""
RUNNER = (
    _RUNNER.replace("%(count)d", str(MOST_ARGUMENTS))
    .replace("%(types)s", ", ".join(["long"] * MOST_ARGUMENTS))
    .replace("%(arguments)s", ", ".join(f"given[{n}]" for n in range(MOST_ARGUMENTS)))
    .replace("%%", "%")
)
REPLACED = (
    (r"addrspacecast \(ptr addrspace\(3\) (@\w+) to ptr\)", r"\1"),
    (
        r"external addrspace\(3\) global \[0 x i8\]",
        f"internal global [{ADDED_BYTES} x i8] zeroinitializer",
    ),
    (r"getelementptr i8, ptr addrspace\(3\) ", "getelementptr i8, ptr "),
    (r"addrspacecast ptr addrspace\(3\) (\S+) to ptr", r"bitcast ptr \1 to ptr"),
    (r"internal addrspace\(3\) global (.*) undef", r"internal global \1 zeroinitializer"),
    (r"@llvm\.nvvm\.read\.ptx\.sreg\.(\w+)\.(\w)", r"@sreg_\1_\2"),
    (re.escape(f"@{NVPTX.barrier_intrinsic[0]}"), "@wait_for_all"),
    (r"@llvm\.nvvm\.cp\.async\.c.\.shared\.global\.(\d+)", r"@copy_\1"),
    (r"@llvm\.nvvm\.cp\.async\.wait\.all", "@wait_for_copies"),
    (r"ptr addrspace\([13]\)", "ptr"),
    (r"@llvm\.nvvm\.shfl\.sync\.idx\.i32", "@shuffle"),
    (r"@llvm\.nvvm\.f2tf32\.rna", "@to_tf32"),
    (r"@llvm\.nvvm\.idp4a\.(.)\.s", r"@dot4_\1"),
    (r"define ptx_kernel", "define"),
    (r"DebugDirectivesOnly", "LineTablesOnly"),
)


PRODUCTS = {
    "m16n8k16.row.col.f32.f32": "mma_f16",
    "m16n8k16.row.col.bf16": "mma_bf16",
    "m16n8k8.row.col.tf32": "mma_tf32",
    "m16n8k32.row.col.s8": "mma_s8",
}
"""LLVM's name of a product on tensor cores -> the function above."""


def _with_products(text):
    """Define the products that a module declares: by functions of sums and factors in memory."""

    def defined(found):
        result, name, types = found.groups()
        types = types.split(", ")
        symbol = PRODUCTS[name.removeprefix("llvm.nvvm.mma.")]
        names = [f"%x{n}" for n in range(len(types))]
        places = [f"%p{n}" for n in range(len(types))]
        given = ", ".join(f"{t} {x}" for t, x in zip(types, names, strict=True))
        lines = [f"declare void @{symbol}(ptr, ptr)", f"define {result} @{name}({given}) {{"]
        lines.append("  %all = alloca [16 x i32]")
        for n, (type_, value, place) in enumerate(zip(types, names, places, strict=True)):
            lines.append(f"  {place} = getelementptr i32, ptr %all, i32 {n}")
            lines.append(f"  store {type_} {value}, ptr {place}")
        lines += [
            f"  call void @{symbol}(ptr %p6, ptr %all)",
            f"  %sums = load {result}, ptr %p6",
            f"  ret {result} %sums\n}}",
        ]
        return "\n".join(lines)

    def loads(found):
        result, name = found.groups()
        count, across = result.count("i32"), int("trans" in name)
        return (
            f"define {result} @{name}(ptr %row) {{\n  %all = alloca [4 x i32]\n"
            f"  call void @load_matrices(ptr %all, ptr %row, i32 {count}, i32 {across})\n"
            f"  %made = load {result}, ptr %all\n  ret {result} %made\n}}"
        )

    pattern = r"declare ({.*}) @(llvm\.nvvm\.ldmatrix\.\S+)\(.*\) .*"
    text, count = re.subn(pattern, loads, text)
    text += "declare void @load_matrices(ptr, ptr, i32, i32)\n" * bool(count)
    text = text.replace("@llvm.nvvm.ldmatrix.", "@emulated.ldmatrix.")
    text = re.sub(
        r"addrspacecast ptr (\S+) to ptr addrspace\([13]\)", r"bitcast ptr \1 to ptr", text
    )
    text = text.replace("(ptr addrspace(3) %", "(ptr %")
    text = re.sub(r"declare ({.*}) @(llvm\.nvvm\.mma\.\S+)\((.*)\) .*", defined, text)
    return text.replace("@llvm.nvvm.mma.", "@emulated.mma.")


@cache
def _runner(folder):
    path = folder / "runner.o"
    (folder / "runner.c").write_text(RUNNER)
    command = [c_compiler(), "-O1", "-fPIC", "-c", folder / "runner.c", "-o", path]
    subprocess.run(command, check=True)
    return path


def loaded(program, folder, target=None):
    """Return a library with the kernels of a program, and the source that describes them."""
    emits = NVPTX.always | (NVPTX.intrinsics & target.emits if target else frozenset())
    module, source = llvm_module(program, NVPTX, emits=emits)
    text = _with_products(module.finished()[0])
    for pattern, by in REPLACED:
        text = re.sub(pattern, by, text)
    here = host()
    image = llvm.emit_all(text, Options(here.triple, here.llvm_cpu, here.features)).image
    number = len(list(folder.glob("*.so")))
    (folder / "kernels.o").write_bytes(image)
    path = folder / f"kernels{number}.so"
    command = [c_compiler(), "-shared", _runner(folder), folder / "kernels.o", "-lm", "-o", path]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(path)), source


def run(program, arrays, folder, *, numbers=None, is_reversed=False, target=None):
    """Run a program on arrays, and return the status of its checks.

    Parameters
    ----------
    program
        The lowered program.
    arrays
        One for each array of the program; outputs are written.
    folder
        Where the library is written.
    numbers
        The values of symbols, by name.
    is_reversed
        Whether the last thread of a block runs first.
    target
        The GPU whose tensor intrinsics are instructions; without one, they are loops.
    """
    library, source = loaded(program, folder, target)
    values = dict(numbers or {})
    memory = list(arrays) + [
        np.zeros(compiled(each.elements)(values), dtypes.to_numpy(each.dtype))
        for each in source.launches.temporaries
    ]
    status = np.zeros(1 + MAX_VALUES, np.int64)

    def launch(call, blocks, known):
        given = [memory[place].ctypes.data for place in call.arrays]
        given += [int(known[name]) for name, _ in call.numbers]
        given += [status.ctypes.data] if call.reports else []
        given += [0] * (MOST_ARGUMENTS - len(given))
        assert compiled(call.added_bytes)(known) <= ADDED_BYTES
        left = library.launch(
            getattr(library, call.symbol),
            (ctypes.c_long * MOST_ARGUMENTS)(*given),
            (ctypes.c_int * 3)(*blocks),
            (ctypes.c_int * 3)(*call.threads),
            is_reversed,
        )
        assert left == 0, "some threads have ended while others wait at a barrier"

    source.launches.run(values, launch)
    return source, status
