"""Machine code of the runtime itself: LLVM IR in this folder, compiled once, never unloaded.

- ``thread_pool.ll``: ``dlc_parallel_for`` and the loop of a helper; ``futex.ll`` or
  ``condition.ll``: how threads wait;
- ``workspaces.ll``: ``dlc_workspace_alloc`` and ``dlc_workspace_free``, memory for temporaries.

Each file documents its invariants. A name in ``${…}`` is a constant from `constants`.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.resources
import os
import platform
import string
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from dlcompiler.errors import DeviceUnavailable
from dlcompiler.runtime.llvm import LoadedModule, Options, compile_ir
from dlcompiler.target import resolve
from dlcompiler.target.detect import available_memory_bytes

#: Name by which kernels call the thread pool: ``void dlc_parallel_for(ptr body, ptr env, i64 begin,
#: i64 end)`` runs ``void body(i64 begin, i64 end, ptr env)`` for chunks of the range.
PARALLEL_FOR = "dlc_parallel_for"

#: Names by which a model says that it begins and ends: ``void dlc_pool_hold()``,
#: ``void dlc_pool_release()``.
HOLDING = ("dlc_pool_hold", "dlc_pool_release")

#: Names by which kernels get memory, ``ptr dlc_workspace_alloc(i64 bytes)``, null where there is
#: none, and give it back: ``void dlc_workspace_free(ptr)``.
WORKSPACE = ("dlc_workspace_alloc", "dlc_workspace_free")

MAX_THREADS = 1024
"""Threads that share a loop, the caller among them, at most."""
WAKES = 4
"""How many sleeping threads one wakes; those wake as many more, where there are."""
CHUNKS = 8
"""Chunks of a thread's share; other threads may take all but one of them."""

HELD_NS = 5_000_000
"""Longest time that an idle helper spins while a model runs [ns]."""

_LEAST_LIMIT_BYTES = 64 << 20
_POISONED_STACK_BYTES = 256 << 10
MOST_OPERANDS = 8
"""Of a kernel that ``dlc_call_poisoned`` calls."""

_OPEN, _WAITING = 1 << 31, 1 << 30

#: Linux's number of the system call, by processor: 64 bits, where it takes a word of 32.
_FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98}
_PAUSE = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}

_LARGE_PAGES = (
    "declare i32 @madvise(ptr, i64, i32)",
    "%advised = call i32 @madvise(ptr %block, i64 %bytes, i32 14)",  # MADV_HUGEPAGE
)

_lock = threading.RLock()
_loaded: list[LoadedModule] = []


def has_futex() -> bool:
    """Tell whether this system has the futex that ``futex.ll`` calls."""
    return sys.platform == "linux" and platform.machine() in _FUTEX


def text(*, futex: bool) -> str:
    """Return the whole module."""
    files = ("thread_pool.ll", "futex.ll" if futex else "condition.ll", "workspaces.ll")
    folder = importlib.resources.files(__name__)
    parts = [folder.joinpath(name).read_text("utf-8") for name in files]
    return string.Template("\n".join(parts)).substitute(constants())


def constants() -> Mapping[str, object]:
    """Return the constants that the files use; some depend on the system."""
    declaration, pause = _PAUSE.get(platform.machine(), ("", ""))
    large_pages = _LARGE_PAGES if sys.platform == "linux" else ("", "")
    return {
        "max_threads": MAX_THREADS,
        "chunks": CHUNKS,
        "wakes": WAKES,
        "held_ns": HELD_NS,
        "open": _signed(_OPEN),
        "not_open": _signed(~_OPEN),
        "waiting": _WAITING,
        "not_waiting": _signed(~_WAITING),
        "waiting_and_one": _WAITING + 1,
        "inside": _WAITING - 1,
        "monotonic_clock": 6 if sys.platform == "darwin" else 1,
        "futex": _FUTEX.get(platform.machine(), -1),
        "pause_declaration": declaration,
        "pause": pause,
        "key_type": "i64" if sys.platform == "darwin" else "i32",  # of POSIX threads
        "large_pages_declaration": large_pages[0],
        "large_pages": large_pages[1],
        "largest_block": 1 << 46,
    }


def address(symbol: str) -> int:
    """Return the address of a function of the runtime; the first call compiles the module."""
    with _lock:
        if not _loaded:
            options = Options.for_target(resolve("cpu"))
            _start(compile_ir(text(futex=has_futex()), options))
    return _loaded[0].address(symbol)


def _start(module: LoadedModule) -> None:
    ctypes.CFUNCTYPE(None)(module.address("dlc_pool_reset"))()
    if ctypes.CFUNCTYPE(ctypes.c_int)(module.address("dlc_workspace_start"))():
        raise DeviceUnavailable("start the runtime", "the system has no key for threads left")
    set_limit = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    set_limit(module.address("dlc_workspace_limit"))(idle_limit_bytes())
    _loaded.append(module)


def poisoning(kernel: int, byte: int) -> Callable[..., None]:
    """Return a function that fills a kernel's temporary memory with a byte, and calls the kernel.

    The idle workspaces of this thread, and the stack below the call, are filled before. A kernel
    that reads a temporary before writing it reads this byte, not values that may happen to be
    right.

    Parameters
    ----------
    kernel : int
        Address of its code.
    byte : int
        What to fill with, from 0 to 255.

    Returns
    -------
    callable
        Takes the kernel's operands, which are pointers; those behind the eighth mean that only
        what lies deeper than this call is filled.
    """

    def call(*operands: Any) -> None:
        if len(operands) > MOST_OPERANDS:
            _poison()(_POISONED_STACK_BYTES, byte)
            ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(operands))(kernel)(*operands)
            return
        rest = [None] * (MOST_OPERANDS - len(operands))
        _call_poisoned()(_POISONED_STACK_BYTES, byte, kernel, *operands, *rest)

    return call


@functools.cache
def _poison() -> Callable[..., None]:
    return ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_uint8)(address("dlc_poison"))


@functools.cache
def _call_poisoned() -> Callable[..., None]:
    pointers = [ctypes.c_void_p] * (1 + MOST_OPERANDS)
    made = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_uint8, *pointers)
    return made(address("dlc_call_poisoned"))


def idle_limit_bytes() -> int:
    """Return the most memory of idle workspaces of all threads: a sixteenth of the total [byte]."""
    return max((available_memory_bytes() or 0) // 16, _LEAST_LIMIT_BYTES)


def _after_fork() -> None:
    """Forget all helper threads in a forked child, where only the calling thread exists."""
    global _lock
    _lock = threading.RLock()
    for module in _loaded:
        for name in ("dlc_pool_reset", "dlc_workspace_reset"):
            ctypes.CFUNCTYPE(None)(module.address(name))()


def _signed(bits: int) -> int:
    """Return a 32-bit number as LLVM prints it: signed."""
    bits &= 0xFFFFFFFF
    return bits - (1 << 32) if bits >> 31 else bits


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
