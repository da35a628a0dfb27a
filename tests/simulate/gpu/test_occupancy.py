"""How many blocks of a kernel run at once: by our formula, and by NVIDIA's header."""

from __future__ import annotations

import importlib.util
import itertools
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from dlcompiler.simulate.gpu.occupancy import occupancy
from dlcompiler.target.gpus import PROCESSORS, RTX_A6000, gpu_target

CONFIGS = list(
    itertools.product(
        PROCESSORS,
        (1, 32, 96, 160, 256, 512, 1024),
        (16, 40, 64, 128, 255),
        (0, 100, 8192, 33_000, 48 * 1024),
    )
)
"""Compute capability, threads, registers of a thread, shared bytes of a block."""


def header() -> Path | None:
    """Return the folder of NVIDIA's header; None without the wheel ``nvidia-cuda-runtime-cu12``."""
    found = importlib.util.find_spec("nvidia")
    places = found.submodule_search_locations or [] if found else []
    paths = (Path(place) / "cuda_runtime" / "include" for place in places)
    return next((path for path in paths if (path / "cuda_occupancy.h").exists()), None)


def test_blocks_equal_those_of_the_header(tmp_path):
    include, compiler = header(), shutil.which("g++")
    if include is None or compiler is None:
        reason = "needs g++ and the wheel nvidia-cuda-runtime-cu12, with cuda_occupancy.h"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    source = Path(__file__).with_name("occupancy_probe.cpp")
    program = tmp_path / "probe"
    subprocess.run([compiler, "-w", f"-I{include}", source, "-o", program], check=True)
    lines, ours = [], []
    for (major, minor), threads, registers, shared in CONFIGS:
        target = gpu_target("g", (major, minor), 1, l1_kib=1, l2_kib=1)
        limit = target.limits
        lines.append(
            f"{major} {minor} {threads} {registers} {shared} {limit['max_threads_per_processor']}"
            f" {limit['shared_bytes_per_processor']} {limit['reserved_shared_bytes']}"
        )
        found = occupancy(target, threads=threads, registers=registers, shared_bytes=shared)
        ours.append(found.blocks)
    done = subprocess.run([program], input="\n".join(lines), capture_output=True, text=True)
    theirs = [int(line) for line in done.stdout.split()]
    assert len(theirs) == len(CONFIGS) >= 500
    wrong = [(c, a, b) for c, a, b in zip(CONFIGS, ours, theirs, strict=True) if a != b]
    assert not wrong, wrong[:10]


def test_the_limiter_is_named():
    few_threads = occupancy(RTX_A6000, threads=32, registers=16, shared_bytes=0)
    assert (few_threads.blocks, few_threads.limited_by) == (16, ("blocks",))
    shared = occupancy(RTX_A6000, threads=256, registers=16, shared_bytes=40_000)
    assert (shared.blocks, shared.limited_by) == (2, ("shared memory",))
    registers = occupancy(RTX_A6000, threads=256, registers=128, shared_bytes=0)
    assert (registers.blocks, registers.limited_by) == (2, ("registers",))
    assert str(registers) == (
        "2 blocks on a multiprocessor, 16 of 48 warps (33 %); limited by registers"
    )


def test_a_kernel_that_does_not_fit_has_no_blocks():
    assert occupancy(RTX_A6000, threads=1024, registers=128, shared_bytes=0).blocks == 0
    assert occupancy(RTX_A6000, threads=32, registers=16, shared_bytes=60_000).blocks == 1
    assert occupancy(RTX_A6000, threads=32, registers=16, shared_bytes=102_000).blocks == 0
    assert occupancy(RTX_A6000, threads=2048, registers=16, shared_bytes=0).blocks == 0


def test_a_target_without_the_limits_has_none():
    bare = replace(RTX_A6000, limits={"max_threads_per_block": 1024})
    assert occupancy(bare, threads=32, registers=16, shared_bytes=0) is None
