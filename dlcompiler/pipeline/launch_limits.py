"""Check the launches of a simulated program before they run, as a driver checks those of a device.

`analysis.device_limits` checks what is known when a program is built. Here are the limits of what
code generation makes of it, and of sizes that the arguments of a call decide. Registers are no
reason: compilers keep to the launch bounds of a kernel, and put what has no register into memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dlcompiler.codegen.gpu.launches import GeneratedKernel, launches_of
from dlcompiler.codegen.gpu.shared_memory import SharedMemory, shared_memory
from dlcompiler.codegen.gpu.shuffles import with_shuffles
from dlcompiler.errors import TargetError
from dlcompiler.ir.program import Launch, Program
from dlcompiler.passes.merge_thread_loops import merge_thread_loops
from dlcompiler.runtime.launches import KernelCall, Launches
from dlcompiler.runtime.source import Interface
from dlcompiler.runtime.symbols import Symbols
from dlcompiler.target import Target
from dlcompiler.target.gpus import FIXED_SHARED_BYTES


def memory_of(launch: Launch) -> SharedMemory:
    """Return the memory that the threads of a block share, in CUDA C.

    Raises
    ------
    TargetError
        As of `merge_thread_loops`, and of `shared_memory`.
    """
    thread, _ = with_shuffles(launch, merge_thread_loops(launch))
    return shared_memory(launch, thread, FIXED_SHARED_BYTES)


def launches_with_memory(program: Program) -> Launches:
    """Return the launches of a program, with the shared memory that they need in CUDA C.

    Raises
    ------
    TargetError
        As of `memory_of`.
    """
    memory = [memory_of(launch) for launch in program.launches]
    calls = {
        place: GeneratedKernel(launch.kernel.name, "index", False, m.fixed_bytes, m.added_bytes)
        for place, (launch, m) in enumerate(zip(program.launches, memory, strict=True))
    }
    return launches_of(program, calls)


def refuse_large_launches(
    launches: Launches, interface: Interface, target: Target, arguments: Sequence[Any]
) -> None:
    """Refuse a call with a launch whose blocks need more shared memory than a GPU has.

    Parameters
    ----------
    launches
        What `launches_with_memory` returns.
    interface
        How the program is called.
    target
        The GPU.
    arguments
        Those of the call.

    Raises
    ------
    TargetError
        The message names the kernel, the limit and its source.
    CallError
        The arguments do not fit.
    """
    for kernel, (fixed, added) in shared_bytes(launches, interface, arguments).items():
        if fixed + added > target.limit("max_shared_bytes"):
            raise no_block_fits(
                target, kernel, f"{fixed + added:,} bytes of shared memory",
                f"{target.limits['max_shared_bytes']:,} bytes",
            )  # fmt: skip


def shared_bytes(
    launches: Launches, interface: Interface, arguments: Sequence[Any]
) -> dict[str, tuple[int, int]]:
    """Return the shared memory of a block of each kernel: what is declared, and added [byte].

    Parameters
    ----------
    launches, interface, arguments
        As of `refuse_large_launches`; the arguments are read where symbols decide a size.

    Raises
    ------
    CallError
        The arguments do not fit.
    """
    found = {call.symbol: (call.shared_bytes, 0) for call in launches.calls()}
    if not any(call.added_bytes for call in launches.calls()):
        return found

    def note(call: KernelCall, _: Sequence[int], values: Mapping[str, Any]) -> None:
        size = call.all_shared_bytes(values) - call.shared_bytes
        found[call.symbol] = call.shared_bytes, max(size, found[call.symbol][1])

    numbers: list[Any] = []
    if interface.variables:
        symbols = Symbols(interface.params, interface.variables, interface.checks)
        _, numbers = symbols.bind(interface.symbol, arguments)
    names = (variable.name for variable in interface.variables)
    launches.run(dict(zip(names, numbers, strict=True)), note)
    return found


def no_block_fits(target: Target, kernel: str, got: str, most: str) -> TargetError:
    """Return the error of a kernel of which no block fits on a multiprocessor."""
    return TargetError(
        f"run {kernel} on {target.name}", "no block of it fits",
        got=got, expected=f"at most {most}", because=target.limits_from or None,
        hint="bind fewer iterations to threads, or compute smaller tiles",
    )  # fmt: skip
