"""`SimulatedModule`: TVM's class of a built GPU program, run by the simulator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from dlcompiler.compat.arrays import unwrapped
from dlcompiler.compat.missing import Named
from dlcompiler.compat.modules import BenchmarkResult, Built, check_name, timed
from dlcompiler.compat.notes import note
from dlcompiler.errors import DeviceUnavailable
from dlcompiler.measurement.measuring import measure
from dlcompiler.measurement.provenance import kind_of_times, provenance_of_times
from dlcompiler.output_files import write_file
from dlcompiler.pipeline import SimulatedKernel

LANGUAGES = {"opencl": "opencl", "cl": "opencl", "metal": "metal", "rocm": "hip", "nvptx": "ptx"}
"""Kind of a classic target -> the language of its kernels; of all others it is CUDA C."""
FORMATS = {"cu": "cuda", "cl": "opencl", "ll": "loops"}
"""Format that classic code asks for -> name of the text here, where they differ."""


class DeviceModule(Named):
    """The kernels of a program, as text.

    Parameters
    ----------
    kernel : SimulatedKernel
        The program.
    kind : str
        Kind of the classic target: ``"cuda"``, ``"opencl"``, …
    """

    classic = "tvm.runtime.Module"

    def __init__(self, kernel: SimulatedKernel, kind: str = "cuda") -> None:
        self._kernel = kernel
        language = LANGUAGES.get(kind, "cuda")
        self.type_key = language if language in kernel.texts else "cuda"
        """The language of its code: ``"cuda"``, ``"opencl"``, …"""

    def get_source(self, fmt: str = "") -> str:
        """Return the code of the kernels.

        Parameters
        ----------
        fmt : str
            Another text of the program, such as ``"ptx"``; by default, that of the target.

        Raises
        ------
        UserError
            There is no such text.
        """
        return self._kernel.source(FORMATS.get(fmt, fmt) or self.type_key)

    def save(self, file_name: Any, fmt: str = "") -> None:
        """Write the code of the kernels to a file.

        Parameters
        ----------
        file_name : path
            Where. The suffix chooses the text: ``.cu``, ``.ptx``, ``.cl``.
        fmt : str
            The suffix to use instead of the file's own.

        Raises
        ------
        UserError
            There is no such text.
        """
        path = Path(file_name)
        write_file(path, self.get_source(fmt or path.suffix.lstrip(".")))

    def __repr__(self) -> str:
        return f"DeviceModule({self._kernel!r})"


class SimulatedModule(Built):
    """A built program for a GPU: call it with arrays, outputs last; the simulator runs it."""

    type_key = "simulated"

    def __init__(self, kernel: SimulatedKernel, kind: str = "cuda") -> None:
        self.kernel = kernel
        """The program as this project builds it."""
        self._device = DeviceModule(kernel, kind)

    @property
    def name(self) -> str:
        """Name of the function."""
        return self.kernel.name

    @property
    def imported_modules(self) -> tuple[DeviceModule, ...]:
        """The code for the device: the kernels as text."""
        return (self._device,)

    def __call__(self, *args: Any) -> None:
        """Run the program in the simulator."""
        self.kernel(*[unwrapped(arg) for arg in args])

    def get_source(self, fmt: str = "") -> str:
        """Return the host program: the sequence of kernel launches."""
        del fmt
        launches = self.kernel.program.launches
        return "".join(f"launch {item.kernel.name}: {item.size}\n" for item in launches)

    def time_evaluator(
        self,
        func_name: str,
        ctx: object = None,
        number: int = 10,
        repeat: int = 1,
        *more: Any,
        **options: Any,
    ) -> Callable[..., BenchmarkResult]:
        """Return a function of the arguments that runs the program once and predicts its time.

        A note says that it is not the time of a GPU. If there is no prediction for the target, it
        is the time of the simulation.
        """
        del ctx, number, more, options
        check_name(func_name, self.name)
        self._note_times(f"time_evaluator {self.name}")

        def predict(*args: Any) -> BenchmarkResult:
            self(*args)  # the outputs are those of a call
            return BenchmarkResult((self.predicted_s(*args),) * repeat)

        is_predicted = kind_of_times(self.kernel.target) == "predicted"
        return predict if is_predicted else lambda *args: timed(lambda: self(*args), 1, 1, 0.0)

    def predicted_s(self, *args: Any) -> float:
        """Return the predicted time of a call [s]; the program does not run."""
        arrays = [unwrapped(arg) for arg in args]
        return measure(self.kernel, arrays).median_s

    def seconds_of(self, *args: Any) -> float | None:
        """Return the predicted time of a call [s], with a note; None if there is no prediction."""
        if kind_of_times(self.kernel.target) != "predicted":
            return None
        self._note_times(f"time of {self.name}")
        return self.predicted_s(*args)

    def _note_times(self, operation: str) -> None:
        origin = provenance_of_times(self.kernel.target, operation)
        if origin.kind == "predicted":
            note(f"{operation}: the times are {origin}, not measured", 4)
        else:
            note(f"{operation}: the times are the simulator's, not those of a GPU", 4)

    def export_library(self, file_name: Any, fcompile: Any = None, **options: Any) -> NoReturn:
        """Refuse: the simulator is not part of a library.

        Raises
        ------
        DeviceUnavailable
            Always.
        """
        raise DeviceUnavailable(
            f"export {self.name}", "a simulated program cannot be exported",
            because="a library has no simulator", hint="imported_modules[0].save writes its code",
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"Module({self.kernel!r})"
