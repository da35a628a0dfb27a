"""Run kernels of OpenCL C in oclgrind, which counts instructions and finds races.

``python -m tests.simulate.gpu.oclgrind`` writes ``oclgrind.json`` beside this file, what it counts.
It needs oclgrind (Debian's package of that name) and pyopencl. The kernels are not optimized, so
that oclgrind counts what the source says.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dlcompiler import te
from dlcompiler.bench.gpu import convolution as large_convolution
from dlcompiler.bench.gpu import row_sums
from dlcompiler.bench.programs import tiled_gpu_gemm
from dlcompiler.pipeline import emit_source
from dlcompiler.pipeline.devices import load
from dlcompiler.runtime.source import Text
from dlcompiler.schedule import create_schedule
from dlcompiler.target import resolve
from tests.thread_programs import convolution, softmax, staged_copy, tiled_matmul

RECORDED = Path(__file__).with_name("oclgrind.json")
LIBRARY = "/usr/lib/oclgrind/liboclgrind-rt-icd.so"
KINDS = {
    "load global": "load global", "store global": "store global", "load shared": "load local",
    "store shared": "store local", "barrier": "call _Z7barrierj()",
    "float32 fma": "call llvm.fmuladd.f32()", "float64 fma": "call llvm.fmuladd.f64()",
    "float32 mul": "fmul", "float32 div": "fdiv",
}  # fmt: skip
"""Our name of an instruction -> that of oclgrind."""


def elementwise(n: int, threads: int, body: Callable[..., Any], dtype: str = "float32") -> Any:
    """Return an elementwise program; its last block has threads left over."""
    A = te.placeholder((n,), dtype, name="A")
    B = te.compute((n,), lambda i: body(A, i), name="B")
    s = create_schedule(B.op)
    block, thread = s[B].split(B.op.axis[0], threads)
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(thread, te.thread_axis("threadIdx.x"))
    return s, [A, B]


def vectors(n: int, lanes: int) -> Any:
    """Return a program whose threads load and store vectors."""
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    s = create_schedule(B.op)
    thread, lane = s[B].split(B.op.axis[0], lanes)
    block, thread = s[B].split(thread, 16)
    s[B].vectorize(lane)
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(thread, te.thread_axis("threadIdx.x"))
    return s, [A, B]


def transposed(n: int = 16, tile: int = 8) -> Any:
    """Return a transposition, in tiles."""
    A = te.placeholder((n, n), name="A")
    B = te.compute((n, n), lambda i, j: A[j, i], name="B")
    s = create_schedule(B.op)
    by, bx, ty, tx = s[B].tile(*B.op.axis, tile, tile)
    for loop, tag in zip(
        (by, bx, ty, tx), ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x"), strict=True
    ):
        s[B].bind(loop, te.thread_axis(tag))
    return s, [A, B]


def window(A: Any, i: Any) -> Any:
    return te.if_then_else(te.all(i >= 1, i < 99), A[i - 1] * 0.25 + A[i], A[i] * 0.5)


PROGRAMS: dict[str, Callable[[], Any]] = {
    "matmul 16": partial(tiled_matmul, 16, 8, 4),
    "matmul 32": partial(tiled_matmul, 32, 16, 8),
    "matmul 24, odd tiles": partial(tiled_matmul, 20, 8, 3),
    "matmul, virtual threads": partial(tiled_matmul, 16, 4, 4, 2),
    "matmul, register tiles": partial(tiled_gpu_gemm, 32),
    "matmul, ragged register tiles": partial(tiled_gpu_gemm, 20),
    "staged copy": staged_copy,
    "staged copy, ragged": partial(staged_copy, 50, 16),
    "convolution": convolution,
    "convolution, virtual threads": partial(convolution, 2),
    "convolution, large tiles": partial(large_convolution, 8, 8),
    "softmax": softmax,
    "softmax, ragged": partial(softmax, 3, 27, 8),
    "row sums": partial(row_sums, 4, 64, 32),
    "row sums, ragged": partial(row_sums, 3, 50, 16),
    "elementwise": partial(elementwise, 96, 32, lambda A, i: A[i] * 3.0),
    "elementwise, ragged": partial(elementwise, 100, 32, lambda A, i: A[i] / (A[i] + 1.5)),
    "double precision": partial(elementwise, 64, 32, lambda A, i: A[i] * A[i] + 1.0, "float64"),
    "conditional window": partial(elementwise, 100, 16, window),
    "vectors of 4": partial(vectors, 128, 4),
    "vectors of 2": partial(vectors, 96, 2),
    "transposition": transposed,
}


WITHOUT_BARRIERS = "without barriers: "
"""Before the name of a program: its code is run without any barrier."""


def run_program(name: str) -> None:
    """Run a program on the OpenCL device of this process."""
    schedule, args = PROGRAMS[name.removeprefix(WITHOUT_BARRIERS)]()
    source, target = emit_source(schedule, args, "opencl")[0], resolve("opencl")
    if name.startswith(WITHOUT_BARRIERS):
        text = re.sub(r"\bbarrier\([^)]*\);", ";", source.text)
        source = replace(source, texts={"opencl": Text(text)})
    kernel = load(source, target)
    kernel(*(np.ones(tuple(map(int, t.shape)), t.dtype) for t in args))


def in_oclgrind(names: Sequence[str], checks: Sequence[str]) -> str:
    """Return what oclgrind prints while another process runs some programs.

    Parameters
    ----------
    names
        Names of programs.
    checks
        What oclgrind does: ``"INST_COUNTS"``, ``"DATA_RACES"`` or ``"UNINITIALIZED"``.
    """
    with tempfile.TemporaryDirectory() as vendors:
        Path(vendors, "oclgrind.icd").write_text(LIBRARY)
        environment = {
            **os.environ, "OCL_ICD_VENDORS": vendors,
            **{f"OCLGRIND_{check}": "1" for check in checks},
            "OCLGRIND_BUILD_OPTIONS": "-cl-opt-disable",
        }  # fmt: skip
        command = [sys.executable, "-m", "tests.simulate.gpu.oclgrind", *names]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{names}: {done.stderr}"
    return done.stdout + done.stderr


def counts_in(said: str) -> list[dict[str, int]]:
    """Return the counts of each kernel that oclgrind has printed."""
    kernels = []
    for part in said.split("Instructions executed for kernel")[1:]:
        found = re.findall(r"^\s*(\d+) - (.*?)(?: \(\d+ bytes\))?$", part, re.MULTILINE)
        kernels.append({name: int(number) for number, name in found})
    return kernels


def main() -> int:
    if sys.argv[1:]:
        for name in sys.argv[1:]:
            run_program(name)
        return 0
    recorded = {}
    for name in PROGRAMS:
        recorded[name] = [
            {ours: found[theirs] for ours, theirs in KINDS.items() if theirs in found}
            for found in counts_in(in_oclgrind([name], ["INST_COUNTS"]))
        ]
        print(name, recorded[name], flush=True)
    RECORDED.write_text(json.dumps(recorded, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
