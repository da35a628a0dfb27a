"""`AcceleratorModule`: TVM's class of a program built for VTA, run by the simulators."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dlcompiler.compat import modules
from dlcompiler.compat.arrays import unwrapped
from dlcompiler.compat.modules import BenchmarkResult, Built, Module, check_name
from dlcompiler.compat.notes import note
from dlcompiler.errors import UserError
from dlcompiler.input_files import open_regular
from dlcompiler.output_files import write_file
from dlcompiler.pipeline.accelerator_kernel import AcceleratorKernel

COUNTERS = (
    *("inp_load_nbytes", "wgt_load_nbytes", "acc_load_nbytes", "uop_load_nbytes"),
    *("out_store_nbytes", "gemm_counter", "alu_counter"),
)
"""Counters of VTA's functional simulator."""
counted: Counter[str] = Counter()
"""The counters, and ``cycle_count``, of all calls since they were cleared."""

_MARK = "# instructions for VTA, saved as "
_saved: dict[str, AcceleratorModule] = {}
"""Mark of a saved file -> its module."""


class AcceleratorModule(Built):
    """A program built for an accelerator: call it with arrays, outputs last."""

    type_key = "vta"

    def __init__(self, kernel: AcceleratorKernel) -> None:
        self.kernel = kernel
        """The program as this project builds it."""

    @property
    def name(self) -> str:
        """Name of the function."""
        return self.kernel.name

    @property
    def imported_modules(self) -> tuple[()]:
        """Modules with code for devices: none; `get_source` has the instructions."""
        return ()

    @property
    def is_partial(self) -> bool:
        """Whether instructions were left out, so that it can only be timed."""
        return any(part is not None and part.is_partial for part in self.kernel.parts)

    def __call__(self, *args: Any) -> None:
        """Run the program in the functional simulator, and add to its counters.

        A program with instructions left out (`Environment.mock`) computes nothing.
        """
        if self.is_partial:
            note(f"call {self.name}: it leaves out instructions; outputs are not computed")
        else:
            counted.update(self.kernel.run(*[unwrapped(arg) for arg in args]))
        counted["cycle_count"] += self.kernel.report().cycles

    def time_evaluator(
        self,
        func_name: str,
        ctx: object = None,
        number: int = 10,
        repeat: int = 1,
        *more: Any,
        **options: Any,
    ) -> Callable[..., BenchmarkResult]:
        """Return a function of the arguments that runs the program once and simulates its time.

        A note says that it is not the time of a board: cycles at the clock of the accelerator.
        """
        del ctx, number, more, options
        check_name(func_name, self.name)
        report = self.kernel.report()
        note(f"time_evaluator {self.name}: the times are {report.provenance}, not measured")

        def simulate(*args: Any) -> BenchmarkResult:
            self(*args)  # the outputs are those of a call
            return BenchmarkResult((report.seconds,) * repeat)

        return simulate

    def get_source(self, fmt: str = "") -> str:
        """Return the instructions as text."""
        return self.kernel.source(fmt or "instructions")

    def save(self, file_name: Any, fmt: str = "") -> None:
        """Write the instructions as text; `load_saved` finds the module again in this process."""
        del fmt
        mark = secrets.token_hex(16)
        _saved[mark] = self
        write_file(Path(file_name), f"{_MARK}{mark}\n{self.get_source()}")

    def export_library(self, file_name: Any, fcompile: Any = None, **options: Any) -> None:
        """Write the instructions as text; see `save`."""
        del fcompile, options
        self.save(file_name)

    def __repr__(self) -> str:
        return f"Module({self.kernel!r})"


def load_saved(path: Path) -> AcceleratorModule | None:
    """Return the module that was saved to a file; None if the file is of another kind.

    Raises
    ------
    UserError
        Another process has saved it.
    """
    try:
        with open_regular(path) as file:
            first = file.readline(len(_MARK) + 40)
    except OSError:
        return None
    mark = first.decode("ascii", "replace")
    if not mark.startswith(_MARK):
        return None
    module = _saved.get(mark.removeprefix(_MARK).strip())
    if module is None:
        raise UserError(
            f"load {path}", "another process has saved these instructions",
            because="the file is their text, for reading", hint="build the module here",
        )  # fmt: skip
    return module


def load_module(path: Any, fmt: str = "") -> Module | AcceleratorModule:
    """Load what a module was saved or exported to.

    Parameters
    ----------
    path : path
        The file; one that others may write is refused.
    fmt : str
        Ignored: the kind is read from the file.
    """
    return load_saved(Path(path)) or modules.load_module(path, fmt)


def clear_stats() -> None:
    """Set all counters of the simulators to 0."""
    counted.clear()


def stats(timed: bool = False) -> dict[str, int]:
    """Return the counters since `clear_stats`, by VTA's names.

    Parameters
    ----------
    timed : bool
        ``cycle_count`` of the timed simulator, in place of those of the functional one.
    """
    return {name: counted[name] for name in (("cycle_count",) if timed else COUNTERS)}
