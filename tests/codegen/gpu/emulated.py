"""Run the LLVM IR of a GPU's kernels on this processor, where each thread is a coroutine.

The text is the one that PTX is generated from. Only what the machine provides is replaced: the
registers that hold the indices of a thread, the barrier, and the address space of shared memory. A
thread runs to its next barrier; then the next thread runs.
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
#include <stdlib.h>
#include <ucontext.h>
enum { STACK = 64 * 1024 };
typedef void kernel(%(types)s);
static kernel *run;
static long given[%(count)d];
static int block[3], thread[3];
static ucontext_t scheduler, *states;
static int now, *ended;
int sreg_ctaid_x(void) { return block[0]; }
int sreg_ctaid_y(void) { return block[1]; }
int sreg_ctaid_z(void) { return block[2]; }
int sreg_tid_x(void) { return now %% thread[0]; }
int sreg_tid_y(void) { return now / thread[0] %% thread[1]; }
int sreg_tid_z(void) { return now / thread[0] / thread[1]; }
void wait_for_all(int barrier) { (void)barrier; swapcontext(&states[now], &scheduler); }
static void whole(void)
{
    run(%(arguments)s);
    ended[now] = 1;
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
        ended[n] = 0;
    }
    while (left == count) {
        for (int n = 0; n < count; ++n) {
            now = is_reversed ? count - 1 - n : n;
            swapcontext(&scheduler, &states[now]);
            left -= ended[now];
        }
    }
    return left; /* not 0: some threads have ended, others wait at a barrier */
}
int launch(
    kernel *function, const long *values, const int *blocks, const int *threads, int is_reversed)
{
    const int count = threads[0] * threads[1] * threads[2];
    char *stacks = malloc((long)count * STACK);
    int left = 0;
    run = function;
    for (int n = 0; n < %(count)d; ++n) given[n] = values[n];
    for (int n = 0; n < 3; ++n) thread[n] = threads[n];
    states = malloc(count * sizeof *states);
    ended = malloc(count * sizeof *ended);
    for (block[2] = 0; block[2] < blocks[2]; ++block[2])
        for (block[1] = 0; block[1] < blocks[1]; ++block[1])
            for (block[0] = 0; block[0] < blocks[0] && !left; ++block[0])
                left = run_block(count, stacks, is_reversed);
    free(stacks);
    free(states);
    free(ended);
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
    (r"define ptx_kernel", "define"),
    (r"DebugDirectivesOnly", "LineTablesOnly"),
)


@cache
def _runner(folder):
    path = folder / "runner.o"
    (folder / "runner.c").write_text(RUNNER)
    command = [c_compiler(), "-O1", "-fPIC", "-c", folder / "runner.c", "-o", path]
    subprocess.run(command, check=True)
    return path


def loaded(program, folder):
    """Return a library with the kernels of a program, and the source that describes them."""
    module, source = llvm_module(program, NVPTX)
    text = module.finished()[0]
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


def run(program, arrays, folder, *, numbers=None, is_reversed=False):
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
    """
    library, source = loaded(program, folder)
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
