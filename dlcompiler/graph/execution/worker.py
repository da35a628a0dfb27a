"""The worker process that runs and times a compiled model, which arrives as a saved file."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dlcompiler import dtypes
from dlcompiler.errors import MeasurementError
from dlcompiler.graph.execution.build import load_model
from dlcompiler.graph.execution.model import LoadedModel
from dlcompiler.graph.operators.base import Array
from dlcompiler.runtime import llvm, threads
from dlcompiler.runtime.fork_server import serve_in_children
from dlcompiler.runtime.serve import Handler, Request
from dlcompiler.runtime.timing import alternate

WORKER_MODULE = "dlcompiler.graph.execution.worker"


class OneModel:
    """The model that this process has loaded, with the arrays that it runs on."""

    def __init__(self) -> None:
        self._model: LoadedModel | None = None
        self.inputs: list[Array] = []
        """Its arguments, in memory of this process."""

    def entries(self) -> dict[str, Handler]:
        """Return the entry points by name."""
        return {"load": self.load, "profile": self.profile, "time": self.time}

    def load(self, request: Request) -> dict[str, Any]:
        """Load a model: ``path``, and ``threads``. The arrays are its inputs: ``0``, ``1``, ….

        It takes the place of the model before it.
        """
        threads.set_num_threads(request.params["threads"])
        self._model = None
        model = load_model(Path(request.params["path"]))
        # In memory of this process, which may have large pages, as in a user's program.
        self.inputs = [request.arrays[f"{n}"].copy() for n in range(len(request.arrays))]
        self._model = model
        return {}

    def profile(self, request: Request) -> dict[str, Any]:
        """Run some times: ``repeats``. Returns ``seconds``: the time of each kernel [s]."""
        found = self.loaded().profile(*self.inputs, repeats=request.params["repeats"])
        return {"seconds": [time.seconds for time in found]}

    def time(self, request: Request) -> dict[str, Any]:
        """Time calls of the whole model: ``budget_s``. Returns ``samples_s`` and ``batch``."""
        model = self.loaded()
        call = partial(model.run, *self.inputs, *self.new_outputs())
        (timing,) = alternate([call], budget_s=request.params["budget_s"])
        return {"samples_s": timing.samples_s, "batch": timing.batch}

    def new_outputs(self) -> list[Array]:
        """Return arrays for the results of the model."""
        params = self.loaded().params
        return [np.empty(p.static_shape, dtypes.to_numpy(p.dtype)) for p in params if p.is_output]

    def loaded(self) -> LoadedModel:
        """Return the model.

        Raises
        ------
        MeasurementError
            None is loaded.
        """
        if self._model is None:
            raise MeasurementError(
                "find the model in the worker", "none is loaded",
                because="the process that held it has ended", hint="load it again",
            )  # fmt: skip
        return self._model


def main() -> None:
    """Answer requests until the pipe closes."""
    llvm.version()  # import LLVM now: starting a process is not part of any measurement
    serve_in_children(OneModel().entries())


if __name__ == "__main__":
    main()
