"""`Module`: TVM's class of a built function."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, pstdev
from typing import Any

from dlcompiler.compat.arrays import unwrapped
from dlcompiler.compat.devices import Device, checked_device
from dlcompiler.compat.missing import Named
from dlcompiler.compat.notes import note
from dlcompiler.errors import DeviceUnavailable, MeasurementError, UserError
from dlcompiler.output_files import write_file
from dlcompiler.pipeline import CKernel
from dlcompiler.runtime.function import Function
from dlcompiler.runtime.libraries import Written, load_library, save_library, save_object
from dlcompiler.runtime.timing import time_call

ENTRY = "__tvm_main__"
"""Another name of a module's function."""


class Built(Named):
    """Base of modules with one function, which has its own name and the name `entry_name`."""

    classic = "tvm.runtime.Module"
    entry_name = ENTRY

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the function."""

    @abstractmethod
    def __call__(self, *args: Any) -> None:
        """Call the function with arrays of NumPy or `nd.array`, and numbers for scalars."""

    @property
    def entry_func(self) -> Callable[..., None]:
        """The function of the module."""
        return self.__call__

    def __getitem__(self, name: str) -> Callable[..., None]:
        return self.get_function(name)

    def get_function(self, name: str, query_imports: bool = False) -> Callable[..., None]:
        """Return the function, by its name or by `entry_name`."""
        del query_imports
        check_name(name, self.name)
        return self.__call__


class Module(Built):
    """A built function: call it with arrays, outputs last."""

    def __init__(self, function: Function) -> None:
        self.function = function
        """The function as this project builds it."""

    @property
    def type_key(self) -> str:
        """Kind of the generated code: ``"llvm"`` or ``"c"``."""
        return "c" if isinstance(self.function, CKernel) else "llvm"

    @property
    def name(self) -> str:
        """Name of the function."""
        return self.function.name

    @property
    def imported_modules(self) -> NoModules:
        """Modules with code for devices: none, since this is code for the CPU."""
        return NoModules()

    def __call__(self, *args: Any) -> None:
        """Call the function with arrays of NumPy or `nd.array`, and numbers for scalars."""
        self.function(*[unwrapped(arg) for arg in args])

    def get_source(self, fmt: str = "") -> str:
        """Return the generated code.

        Parameters
        ----------
        fmt : str
            ``"ll"``, the default, is LLVM's text; ``"asm"`` is assembly. For a module built for
            ``"c"``: ``"c"``, the default, is its source; ``"h"`` is the header.
        """
        if isinstance(self.function, CKernel):
            return self._c_source(self.function, fmt)
        if fmt in ("", "ll", "llvm"):
            return self.function.llvm_ir
        if fmt in ("asm", "s"):
            return self.function.assembly
        raise UserError(
            f"source of {self.name}", "unknown format", got=repr(fmt), expected="'ll' or 'asm'"
        )

    def _c_source(self, kernel: CKernel, fmt: str) -> str:
        if fmt in ("", "c"):
            return kernel.source()
        if fmt == "h":
            return kernel.header
        raise UserError(
            f"source of {self.name}", "unknown format", got=repr(fmt), expected="'c' or 'h'",
            because="the module was built for the target 'c'",
        )  # fmt: skip

    def time_evaluator(
        self,
        func_name: str,
        ctx: Device | None = None,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: int = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        f_preproc: str = "",
        *,
        dev: Device | None = None,
    ) -> Callable[..., BenchmarkResult]:
        """Return a function that takes the arguments of this one and measures its calls.

        Parameters
        ----------
        func_name : str
            `entry_name`, or the function's name.
        ctx, dev : Device, optional
            Where it runs; two names of one argument.
        number : int
            Calls in a row; their mean is one result.
        repeat : int
            Number of results.
        min_repeat_ms : int
            Least duration of each row of calls [ms]; `number` grows until it is reached.
        limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown, f_preproc
            Accepted, without effect.
        """
        del limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown, f_preproc
        checked_device(ctx, dev, "time_evaluator")
        check_name(func_name, self.name)
        if number < 1 or repeat < 1 or min_repeat_ms < 0:
            raise MeasurementError(
                f"time {self.name}", "these limits allow no measurement",
                got=f"number={number}, repeat={repeat}, min_repeat_ms={min_repeat_ms}",
                expected="number >= 1, repeat >= 1, min_repeat_ms >= 0",
            )  # fmt: skip

        def evaluate(*args: Any) -> BenchmarkResult:
            arrays = [unwrapped(arg) for arg in args]
            return timed(lambda: self.function(*arrays), number, repeat, min_repeat_ms / 1000)

        return evaluate

    def export_library(self, file_name: Any, fcompile: Any = None, **options: Any) -> Written:
        """Write the module to a file that `load_module` reads.

        Parameters
        ----------
        file_name : path
            With a suffix of shared objects (``.so``, ``.dylib``, ``.dll``), and if there is a C
            compiler, a shared object is written. Otherwise, it is a container of this project: the
            code as LLVM's text, compiled when it is loaded.
        fcompile, **options
            Accepted, with a note.

        Returns
        -------
        Written
            The path, and whether it is a shared object or a container.
        """
        if fcompile is not None or options:
            note("export_library: the options are ignored; dlcompiler links the code itself")
        written = save_library(self.function, Path(file_name))
        if written.surprise:
            note(f"export_library: {written}")
        return written

    def save(self, file_name: Any, fmt: str = "") -> None:
        """Write the code: an object ``.o`` for `contrib.cc.create_shared`, or text ``.ll``, ``.s``.

        A module for ``"c"`` writes ``.c`` and ``.h``.

        Parameters
        ----------
        file_name : path
            Where.
        fmt : str
            The suffix to use instead of the file's own.
        """
        path = Path(file_name)
        match fmt or path.suffix.lstrip("."):
            case "o" | "obj":
                save_object(self.function, path)
            case "c" | "h" as suffix if isinstance(self.function, CKernel):
                write_file(path, self.get_source(suffix))
            case "ll":
                write_file(path, self.get_source("ll"))
            case "s" | "asm":
                write_file(path, self.get_source("asm"))
            case other:
                raise UserError(
                    f"save {path}", "unknown format", got=repr(other), expected="'o', 'll' or 's'",
                    hint="export_library writes a library",
                )  # fmt: skip

    def __repr__(self) -> str:
        return f"Module({self.function!r})"


def check_name(name: str, own: str) -> None:
    """Raise an error if a name is not that of a module's function."""
    if name not in (ENTRY, own):
        raise UserError(
            f"function {name!r} of a module", "there is no such function",
            expected=f"{own!r}, or module.entry_name",
        )  # fmt: skip


class NoModules(tuple[Module, ...]):
    """Empty list of device modules, for a module for the CPU; an index error explains it."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return ()
        raise DeviceUnavailable(
            f"imported_modules[{index!r}]", "a module for the CPU has no device code",
            hint="module.get_source() is the CPU's code",
        )  # fmt: skip


@dataclass(frozen=True)
class BenchmarkResult:
    """Measured times [s]; each is the mean over a series of calls."""

    results: tuple[float, ...]
    """Results in the order of measurement [s]."""

    @property
    def mean(self) -> float:
        """Mean time [s]."""
        return fmean(self.results)

    @property
    def median(self) -> float:
        """Median time [s]."""
        return median(self.results)

    @property
    def std(self) -> float:
        """Standard deviation of the times [s]."""
        return pstdev(self.results)

    @property
    def min(self) -> float:
        """Shortest time [s]."""
        return min(self.results)

    @property
    def max(self) -> float:
        """Longest time [s]."""
        return max(self.results)

    def __iter__(self) -> Iterable[float]:
        return iter(self.results)

    def __str__(self) -> str:
        names = ("mean", "median", "max", "min", "std")
        head = " ".join(f"{name + ' (ms)':^12}" for name in names)
        row = " ".join(f"{getattr(self, name) * 1e3:^12.4f}" for name in names)
        return f"Execution time summary:\n{head}\n{row}"


def timed(call: Callable[[], None], number: int, repeat: int, shortest_s: float) -> BenchmarkResult:
    """Measure `repeat` series of `number` calls, or more calls if a series is too short."""
    if shortest_s:
        row = time_call(call, warmup=1, min_repeats=1, max_repeats=1, min_seconds=0, batch=number)
        while (seconds := row.samples_s[0] * number) < shortest_s:
            number = max(int(number * min(shortest_s / seconds, 10.0)) + 1, number + 1)
            row = time_call(
                call, warmup=0, min_repeats=1, max_repeats=1, min_seconds=0, batch=number
            )
    timing = time_call(
        call, warmup=1, min_repeats=repeat, max_repeats=repeat, min_seconds=0, batch=number
    )
    return BenchmarkResult(timing.samples_s)


def load_module(path: Any, fmt: str = "") -> Module:
    """Load what `Module.export_library` wrote.

    Parameters
    ----------
    path : path
        The file; one that others may write is refused.
    fmt : str
        Ignored: the kind is read from the file.
    """
    del fmt
    return Module(load_library(Path(path)))
