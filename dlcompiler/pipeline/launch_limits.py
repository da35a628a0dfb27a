"""Check the launches of a simulated program before they run, as a driver checks those of a device.

`analysis.device_limits` checks what is known when a program is built. Here are the limits of what
code generation makes of it, and of sizes that the arguments of a call decide. Registers are no
reason: compilers keep to the launch bounds of a kernel, and put what has no register into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from dlcompiler.codegen.gpu.launches import GeneratedKernel, launches_of
from dlcompiler.codegen.gpu.shared_memory import shared_memory
from dlcompiler.codegen.gpu.shuffles import with_shuffles
from dlcompiler.errors import TargetError
from dlcompiler.ir.program import Program
from dlcompiler.passes.merge_thread_loops import merge_thread_loops
from dlcompiler.runtime.launches import KernelCall, Launches
from dlcompiler.runtime.source import Interface
from dlcompiler.runtime.symbols import Symbols
from dlcompiler.target import Target
from dlcompiler.target.gpus import FIXED_SHARED_BYTES


class LaunchLimits:
    """The limits of a GPU for the launches of a program.

    Parameters
    ----------
    program
        The kernels and launches.
    interface
        How the program is called.
    target
        The GPU.
    """

    def __init__(self, program: Program, interface: Interface, target: Target) -> None:
        self._program, self._interface, self._target = program, interface, target

    @cached_property
    def _most(self) -> Launches | None:
        """The launches, if no shuffle replaces memory; None for what is interpreted only."""
        try:
            return launches_with_memory(self._program, has_shuffles=False)
        except TargetError:
            return None  # no language of a GPU can express it

    @cached_property
    def _exact(self) -> Launches:
        return launches_with_memory(self._program)

    def check(self, arguments: Sequence[Any]) -> None:
        """Refuse a call with a launch of too many blocks, or whose blocks share too much memory.

        Raises
        ------
        TargetError
            The message names the kernel, the limit and its source.
        CallError
            The arguments do not fit.
        """
        if self._most is None:
            return
        self._check_blocks(self._most, arguments)
        if not self._too_large(self._most, arguments):
            return  # what shuffles replace takes long to find
        for kernel, size in self._too_large(self._exact, arguments).items():
            raise no_block_fits(
                self._target, kernel, f"{size:,} bytes of shared memory",
                f"{self._target.limits['max_shared_bytes']:,} bytes",
            )  # fmt: skip

    def _check_blocks(self, launches: Launches, arguments: Sequence[Any]) -> None:
        """Refuse more blocks along an axis than a launch may have."""
        if all(isinstance(count, int) for call in launches.calls() for count in call.blocks):
            return  # `build` has checked them

        def check(call: KernelCall, blocks: Sequence[int], _: Mapping[str, Any]) -> None:
            for axis, count in zip("xyz", blocks, strict=True):
                most = self._target.limit(f"max_blocks_{axis}")
                if count > most:
                    raise TargetError(
                        f"run {call.symbol} on {self._target.name}",
                        f"too many blocks along blockIdx.{axis}",
                        got=f"{count:,}", expected=f"at most {most:,}",
                        because=self._target.limits_from or None,
                        hint="split the loop, and bind both parts to axes of their own",
                    )  # fmt: skip

        _run(launches, self._interface, arguments, check)

    def _too_large(self, launches: Launches, arguments: Sequence[Any]) -> dict[str, int]:
        """Return the kernels whose blocks need more than there is, with what they need [byte]."""
        needed = shared_bytes(launches, self._interface, arguments)
        sizes = {kernel: fixed + added for kernel, (fixed, added) in needed.items()}
        most = self._target.limit("max_shared_bytes")
        return {kernel: size for kernel, size in sizes.items() if size > most}


def launches_with_memory(program: Program, *, has_shuffles: bool = True) -> Launches:
    """Return the launches of a program, with the shared memory that they need in CUDA C.

    Parameters
    ----------
    program
        The kernels and launches.
    has_shuffles
        Whether registers replace memory where `codegen.gpu.shuffles` can.

    Raises
    ------
    TargetError
        As of `merge_thread_loops`, and of `shared_memory`.
    """
    calls = {}
    for place, launch in enumerate(program.launches):
        thread = merge_thread_loops(launch)
        if has_shuffles:
            thread, _ = with_shuffles(launch, thread)
        memory = shared_memory(launch, thread, FIXED_SHARED_BYTES)
        calls[place] = GeneratedKernel(
            launch.kernel.name, "index", False, memory.fixed_bytes, memory.added_bytes
        )
    return launches_of(program, calls)


def shared_bytes(
    launches: Launches, interface: Interface, arguments: Sequence[Any]
) -> dict[str, tuple[int, int]]:
    """Return the shared memory of a block of each kernel: what is declared, and added [byte].

    Parameters
    ----------
    launches
        What `launches_with_memory` returns.
    interface, arguments
        How the program is called, and with what; read only where symbols decide a size.

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

    _run(launches, interface, arguments, note)
    return found


def _run(
    launches: Launches, interface: Interface, arguments: Sequence[Any], launch: Callable[..., None]
) -> None:
    """Call a function for each launch that some arguments lead to: see `Launches.run`."""
    numbers: list[Any] = []
    if interface.variables:
        symbols = Symbols(interface.params, interface.variables, interface.checks)
        _, numbers = symbols.bind(interface.symbol, arguments)
    names = (variable.name for variable in interface.variables)
    launches.run(dict(zip(names, numbers, strict=True)), launch)


def no_block_fits(target: Target, kernel: str, got: str, most: str) -> TargetError:
    """Return the error of a kernel of which no block fits on a multiprocessor."""
    return TargetError(
        f"run {kernel} on {target.name}", "no block of it fits",
        got=got, expected=f"at most {most}", because=target.limits_from or None,
        hint="bind fewer iterations to threads, or compute smaller tiles",
    )  # fmt: skip
