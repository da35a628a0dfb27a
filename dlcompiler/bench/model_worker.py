"""The worker process of a model's contest: our model and the peers, compared, then timed.

It is the worker of `dlcompiler.graph.execution.remote` with an additional entry point. Peers of
whole models are imported here and nowhere else.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import threadpoolctl

from dlcompiler.bench.alternation import alternated
from dlcompiler.bench.memory import EXPECTED, INPUT
from dlcompiler.bench.peers import MODEL_PEERS, Absent, Array, ModelJob, Offer
from dlcompiler.graph.execution.comparison import value_pair
from dlcompiler.graph.execution.worker import OneModel
from dlcompiler.measurement.aligned import aligned_copy
from dlcompiler.measurement.ceilings import ceilings_entry
from dlcompiler.runtime import llvm
from dlcompiler.runtime.serve import Handler, Request, serve
from dlcompiler.runtime.timing import Call

COMMAND = (sys.executable, "-P", "-m", "dlcompiler.bench.model_worker")
T = TypeVar("T")
EVALUATED = "evaluate"
"""Name of the results that came with the request, among those that ours are compared with."""


class ModelContests(OneModel):
    """Entry points about one model and its peers."""

    def entries(self) -> dict[str, Handler]:
        """Return the entry points by name."""
        return {**super().entries(), "contest": self.contest, "ceilings": ceilings_entry}

    def contest(self, request: Request) -> dict[str, Any]:
        """Compare the loaded model with peers, and time all in alternation.

        Parameters: ``path``, the ONNX file; ``peers``, names; ``threads``; ``tolerance``, the
        largest relative error or null; ``limits``, of `alternate`. The arrays are named
        ``input:…``, by the names of the inputs, and ``expected:0`` …, results that are known to be
        right.

        Returns ``absent``, peer -> reason; ``agreements``, whose results ours were compared with ->
        ``error``, the largest relative error or null, ``tolerance`` and ``problem``, which is empty
        if they agree; ``samples_s``, name -> seconds of each round, empty if a result differs from
        those that decide; and ``ways``, peer -> how it computed.
        """
        params = request.params
        outputs = self.new_outputs()
        ours = partial(self.loaded().run, *self.inputs, *outputs)
        ours()
        with threadpoolctl.threadpool_limits(params["threads"]):
            offers, absent = _offers(params, request.arrays)
            references: dict[str, Callable[[], Sequence[Array]]] = {
                name: partial(_results, offer) for name, offer in offers.items()
            }
            if expected := _numbered(request.arrays, EXPECTED):
                references[EVALUATED] = lambda: expected
            samples: dict[str, Sequence[float]] = {}
            agreements = _agreements(outputs, references, params["tolerance"])
            if not any(found["problem"] for found in decisive(agreements).values()):
                calls: dict[str, Call] = {"ours": ours}
                calls |= {name: offer.call for name, offer in offers.items()}
                timings = alternated(calls, params["threads"], params["limits"])
                samples = {name: timing.samples_s for name, timing in timings.items()}
                agreements = _agreements(outputs, references, params["tolerance"])
        ways = {name: offer.way for name, offer in offers.items()}
        return {"absent": absent, "agreements": agreements, "samples_s": samples, "ways": ways}


def _offers(
    params: Mapping[str, Any], arrays: Mapping[str, Array]
) -> tuple[dict[str, Offer], dict[str, str]]:
    """Return the offer of each peer that runs the model, and why others do not."""
    inputs = {
        name.removeprefix(INPUT): aligned_copy(array)
        for name, array in arrays.items()
        if name.startswith(INPUT)
    }
    job = ModelJob(params["path"], inputs, params["threads"])
    found, absent = {}, {}
    for name in params["peers"]:
        try:
            offer = MODEL_PEERS[name](job)
            offer.call()
            found[name] = offer
        except Absent as reason:
            absent[name] = str(reason)
        except Exception as error:  # of a library that is not ours
            said = str(error).partition("\n")[0]
            absent[name] = f"{type(error).__name__}: {said}"
    return found, absent


def _results(offer: Offer) -> Sequence[Array]:
    found = offer.result()
    return found if isinstance(found, list) else [found]


def _numbered(arrays: Mapping[str, Array], prefix: str) -> list[Array]:
    count = sum(name.startswith(prefix) for name in arrays)
    return [arrays[f"{prefix}{n}"] for n in range(count)]


def _agreements(
    ours: Sequence[Array],
    references: Mapping[str, Callable[[], Sequence[Array]]],
    tolerance: float | None,
) -> dict[str, dict[str, Any]]:
    return {name: agreement(ours, result(), tolerance) for name, result in references.items()}


def decisive(agreements: Mapping[str, T]) -> Mapping[str, T]:
    """Return the comparisons that decide whether our results are right.

    Results that came with the request decide alone: a peer may be less exact than the tolerance.
    """
    if EVALUATED in agreements:
        return {EVALUATED: agreements[EVALUATED]}
    return agreements


def agreement(
    ours: Sequence[Array], theirs: Sequence[Array], tolerance: float | None
) -> dict[str, Any]:
    """Compare our results with those of another implementation.

    Parameters
    ----------
    ours, theirs : sequence of array
        The results in order.
    tolerance : float, optional
        Largest relative error of floats; else that of their dtype
        (`dlcompiler.graph.execution.comparison.TOLERANCES`); [1].

    Returns
    -------
    dict
        ``error`` and ``tolerance`` of the result with the largest error, relative to the largest
        magnitude in it; ``problem``, the first difference in words, or nothing.
    """
    if len(ours) != len(theirs):
        return _problem(f"{len(ours)} results, {len(theirs)} expected")
    found: dict[str, Any] = {"error": 0.0, "tolerance": tolerance, "problem": ""}
    for number, (got, expected) in enumerate(zip(ours, theirs, strict=True)):
        name = f"result {number}"
        if (got.shape, got.dtype) != (expected.shape, expected.dtype):
            kinds = [f"{array.dtype}{list(array.shape)}" for array in (got, expected)]
            return _problem(f"{name} is {kinds[0]}, expected {kinds[1]}")
        pair = value_pair(name, expected, got, tolerance)
        if pair.differs:
            problem = f"{name} differs at {list(pair.at)}: {got[pair.at]!s}, expected "
            problem += f"{expected[pair.at]!s}; relative error {pair.error:.3g}, tolerance "
            return _problem(f"{problem}{pair.tolerance:g}", pair.error, pair.tolerance)
        if found["tolerance"] is None or pair.error > found["error"]:
            found = {**found, "error": pair.error, "tolerance": pair.tolerance}
    return found


def _problem(
    text: str, error: float | None = None, tolerance: float | None = None
) -> dict[str, Any]:
    is_number = error is not None and math.isfinite(error)
    return {"error": error if is_number else None, "tolerance": tolerance, "problem": text}


def main() -> None:
    """Answer requests until the pipe closes."""
    llvm.version()
    # `caller_apart` moves the thread that answers, and never the main thread.
    server = threading.Thread(target=serve, args=(ModelContests().entries(),))
    server.start()
    server.join()


if __name__ == "__main__":
    main()
