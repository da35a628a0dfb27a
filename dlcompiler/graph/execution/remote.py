"""A compiled model in a worker process: if a kernel crashes or hangs, it is an outcome."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dlcompiler.graph.execution.model import LoadedModel
from dlcompiler.graph.execution.profiles import Profile
from dlcompiler.graph.execution.worker import WORKER_MODULE
from dlcompiler.runtime.threads import num_threads
from dlcompiler.runtime.timing import Timing, measured_here
from dlcompiler.runtime.workers import MEASUREMENT_WORKER, Worker

LOAD_LIMIT_S = 120.0
"""Time until the kernels of a model are compiled in the worker; [s]."""


def model_worker() -> Worker:
    """Return a worker for models; its process starts with the first of them."""
    # Without a limit of its memory: a model may need as much as it needs in this process.
    return Worker((*MEASUREMENT_WORKER[:-1], WORKER_MODULE), memory_limit_bytes=None)


class RemoteModel:
    """A model that a worker has loaded, with the arrays that it runs on.

    Parameters
    ----------
    model : LoadedModel
        The model.
    inputs : sequence of array
        Its arguments.
    worker : Worker
        Of `model_worker`, or of a module with the same entry points; the model takes the place of
        the one before it.
    threads : int, optional
        Number of threads of parallel loops; by default that of this process.

    Raises
    ------
    CallError
        If the inputs do not fit.
    UserError
        If the model cannot be saved.
    MeasurementError
        If the worker cannot load it.
    """

    def __init__(
        self, model: LoadedModel, inputs: Sequence[Any], worker: Worker, threads: int | None = None
    ) -> None:
        self._model, self._worker = model, worker
        given = model.checked_inputs(inputs)
        with tempfile.TemporaryDirectory(prefix="dlcompiler-") as folder:
            path = model.save(Path(folder) / "model")
            params = {"path": str(path), "threads": threads or num_threads()}
            arrays = {f"{n}": array for n, array in enumerate(given)}
            outcome = worker.call("load", params, timeout_s=LOAD_LIMIT_S, arrays=arrays)
        outcome.unwrap("load the model in a worker")

    def profile(self, timeout_s: float, repeats: int = 1) -> Profile:
        """Return the time of each kernel as `LoadedModel.profile` does.

        Raises
        ------
        MeasurementError
            If a kernel fails, crashes or does not end in time.
        """
        outcome = self._worker.call("profile", {"repeats": repeats}, timeout_s=timeout_s)
        found = outcome.unwrap("run the model in a worker")["seconds"]
        return self._model.timed(found)

    def time(self, budget_s: float, timeout_s: float) -> Timing:
        """Measure calls of the whole model for some time.

        Raises
        ------
        MeasurementError
            If a kernel fails, crashes or does not end in time.
        """
        outcome = self._worker.call("time", {"budget_s": budget_s}, timeout_s=timeout_s)
        found = outcome.unwrap("time the model in a worker")
        samples = tuple(found["samples_s"])
        return Timing(samples, batch=found["batch"], provenance=measured_here())
