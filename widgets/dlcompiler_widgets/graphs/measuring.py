"""Build a model and measure it: in a background thread, on request, with progress.

A model for a CPU runs in a worker process, so a kernel that hangs can be stopped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcompiler import dtypes, graph
from dlcompiler.errors import DLCompilerError
from dlcompiler.graph import CompiledModel
from dlcompiler.graph.execution import RunnableModel
from dlcompiler.graph.execution.profiles import KernelTime
from dlcompiler.graph.execution.remote import RemoteModel, model_worker
from dlcompiler.runtime.timing import format_seconds, measured_here
from dlcompiler.runtime.workers import Worker
from dlcompiler_widgets.explorer.status import Status, status_of, status_of_bug
from dlcompiler_widgets.graphs.analysis import Source, Wishes, with_wishes

ROUNDS = 10
"""Runs of the whole model, of which the shortest time of each kernel counts; [1]."""
BUDGET_S = 0.5
"""Time for the calls of the whole model [s]."""
TIME_LIMIT_S = 120.0
"""Time for one run of the model, and for its calls [s]."""


STOPPED = Status("The measurement was stopped.")


@dataclass(frozen=True)
class Measured:
    """Times of a model."""

    kernels: tuple[tuple[str, float], ...]
    """Name and shortest time of each kernel, in the order in which they run; [s]."""
    call_s: float
    """Median time of a call of the whole model, or the sum of the kernels [s]."""
    spread_s: float | None
    """Half of the range between its quartiles [s]; None: `call_s` is a sum."""
    where: str
    """``measured on …``, or ``predicted by …``."""

    @property
    def call(self) -> str:
        """The time of a call in words."""
        if self.spread_s is None:
            return f"{format_seconds(self.call_s)} (the sum of the kernels)"
        return f"{format_seconds(self.call_s)} ± {format_seconds(self.spread_s)}"


def measure(
    source: Source, wishes: Wishes, watch: Callable[[str], bool], worker: Worker
) -> Measured | None:
    """Build a model and measure it.

    Parameters
    ----------
    source : Source
        The model.
    wishes : tuple of Wish
        Decisions of the user.
    watch : callable
        Told what is being done; returns False to stop.
    worker : Worker
        Of `model_worker`. Models for devices run in this process.

    Returns
    -------
    Measured, or None if it was stopped

    Raises
    ------
    DLCompilerError
        If the model cannot be built, or a run fails, crashes or does not end in time.
    """
    if not watch("Building the kernels …"):
        return None
    module = source.module if source.is_fused else with_wishes(source.module, wishes)
    model = graph.build(module, source.target, context=source.context)
    inputs = list(source.inputs) if source.inputs is not None else random_inputs(model)
    remote = RemoteModel(model, inputs, worker) if isinstance(model, CompiledModel) else None
    best: list[KernelTime] = []
    for number in range(1, ROUNDS + 1):
        if not watch(f"Measuring: run {number} of {ROUNDS} …"):
            return None
        if remote is not None:
            found = remote.profile(TIME_LIMIT_S)
        else:
            found = model.profile(*inputs, repeats=1)
        pairs = zip(best or found, found, strict=True)
        best = [min(pair, key=lambda time: time.seconds) for pair in pairs]
        if all(time.times.kind != "measured" for time in found):
            break  # Another run gives the same.
    times = tuple((time.name, time.seconds) for time in best)
    where = " and ".join(dict.fromkeys(str(time.times) for time in best)) or str(measured_here())
    if remote is None:
        # A call of a device waits for copies, and a simulated one runs on this CPU.
        return Measured(times, sum(seconds for _, seconds in times), None, where)
    if not watch("Measuring calls of the whole model …"):
        return None
    timing = remote.time(BUDGET_S, TIME_LIMIT_S)
    return Measured(times, timing.median_s, timing.spread_s, where)


def random_inputs(model: RunnableModel) -> list[Any]:
    """Return random arrays for the inputs of a model; integers are 0 or 1, which index anything."""
    random = np.random.default_rng(0)
    arrays = []
    for param in model.params:
        if not param.is_output:
            shape, is_whole = param.static_shape, not dtypes.is_float(param.dtype)
            values = random.integers(0, 2, shape) if is_whole else random.uniform(-1, 1, shape)
            arrays.append(np.asarray(values).astype(dtypes.to_numpy(param.dtype)))
    return arrays


class Measuring:
    """Measures one model at a time in a background thread."""

    def __init__(
        self, on_change: Callable[[Wishes | None, Measured | Status | None], None]
    ) -> None:
        self.doing = ""
        """What is being done; "" if nothing is."""
        self._on_change = on_change
        self._is_stopped = False
        self._worker = model_worker()
        self._thread: threading.Thread | None = None

    def start(self, source: Source, wishes: Wishes) -> bool:
        """Begin to measure; return False if a measurement is going on."""
        if self.doing:
            return False
        self.doing, self._is_stopped = "Building the kernels …", False
        self._thread = threading.Thread(
            target=self._run, args=(source, wishes), name="measuring a graph", daemon=True
        )
        self._thread.start()
        return True

    def cancel(self) -> None:
        """Stop now, in the middle of a run of the worker; on a device, before the next run."""
        self._is_stopped = True
        self._worker.interrupt()

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until the last measurement has ended."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _run(self, source: Source, wishes: Wishes) -> None:
        def watch(text: str) -> bool:
            self.doing = text
            if not self._is_stopped:
                self._on_change(None, None)
            return not self._is_stopped

        result: Measured | Status
        try:
            result = measure(source, wishes, watch, self._worker) or STOPPED
        except DLCompilerError as error:
            result = STOPPED if self._is_stopped else status_of(error)
        except Exception as error:
            # A bug, too, must reach the page: nobody looks at what a thread prints.
            result = status_of_bug("measure the graph", error)
        self.doing = ""
        self._on_change(wishes, result)
