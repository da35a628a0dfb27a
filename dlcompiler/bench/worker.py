"""The worker process of a contest: our kernels and the peers, verified, then timed in alternation.

It is the worker of `dlcompiler.measurement` with an additional entry point. Peers are imported here
and nowhere else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import threadpoolctl

from dlcompiler import dtypes
from dlcompiler.bench.alternation import alternated
from dlcompiler.bench.baselines import baseline_offers
from dlcompiler.bench.memory import ALONE, BOUND, EXPECTED, INPUT, PLAIN
from dlcompiler.bench.peers import REGISTRY, Absent, Array, Job, Offer, torch_peer
from dlcompiler.errors import MeasurementError
from dlcompiler.measurement.aligned import aligned, aligned_copy
from dlcompiler.measurement.equality import differences
from dlcompiler.measurement.fma_peak import FMALoop
from dlcompiler.measurement.worker import Kernels
from dlcompiler.ops.packing import GIVEN
from dlcompiler.runtime import llvm, threads
from dlcompiler.runtime.function import Function
from dlcompiler.runtime.serve import Handler, Request, serve
from dlcompiler.runtime.timing import Timing

OTHER_COMPUTATION = 1000.0
"""A peer whose error is more than this many of our bounds does not compute the work."""
_TRIALS = {"budget_s": 0.0, "sample_s": 2e-3, "rounds": (3, 3)}


class Contests:
    """Entry points about kernels and peers."""

    def __init__(self) -> None:
        self._kernels = Kernels()

    def entries(self) -> dict[str, Handler]:
        """Return the entry points by name."""
        return {**self._kernels.entries(), "contest": self.contest, "gpu_peer": gpu_peer}

    def contest(self, request: Request) -> dict[str, Any]:
        """Verify a kernel, and time it in alternation with peers and the machine's peak.

        Parameters: ``ours``, handles of ``main``, which computes, and ``packing``, which packs the
        weights in each call, or null; ``alone``, those of the same for one thread, or null;
        ``peers``, names; ``baselines``, whether memcpy and streams take part; ``job``, the fields
        of `Job` without arrays; ``roles``, role -> name of an array; ``threads``; ``limits``, of
        `alternate`. The arrays are named ``input:…``, ``expected:…`` and ``bound:…``, ``plain:…``
        where peers take another one than the kernel, and all again as ``alone:…`` where the kernel
        for one thread takes others.

        Returns ``worst``, the largest difference as a fraction of the bound; ``samples_s``, name ->
        seconds of each round; ``ways``, peer -> how it computed; ``absent``, peer -> reason; and
        ``flops`` and ``flops_alone`` of the peak's calls. Names are ``ours``, ``ours alone``,
        ``peak``, ``peak alone`` and the peers'.
        """
        params = request.params
        owned = {name: aligned_copy(array) for name, array in request.arrays.items()}
        arrays = {name: array for name, array in owned.items() if not name.startswith(ALONE)}
        count = params["threads"]
        threads.set_num_threads(count)
        ours = self._ours(params["ours"], arrays)
        peak = FMALoop(count)
        entrants = {"ours": ours, "peak": _Entrant(peak)}
        worst = ours.verify(arrays)
        if params["alone"] is not None:
            own = {
                name.removeprefix(ALONE): array
                for name, array in owned.items()
                if name.startswith(ALONE)
            }
            entrants["ours alone"] = self._ours(params["alone"], own or arrays)
            worst = max(worst, entrants["ours alone"].verify(own or arrays))
            entrants["peak alone"] = _Entrant(FMALoop(1))
        with threadpoolctl.threadpool_limits(count):
            job = _job(params, arrays)
            baselines = baseline_offers(job) if params["baselines"] else {}
            peers, absent = _peers(params["peers"], job, arrays, baselines)
            entrants |= peers
            timings = _measure(entrants, count, params["limits"])
        ours.verify(arrays)
        return {
            "worst": worst,
            "samples_s": {name: timing.samples_s for name, timing in timings.items()},
            "ways": {name: entrants[name].way for name in peers},
            "differences": {name: entrants[name].difference for name in peers},
            "absent": absent,
            "flops": peak.flops,
            "flops_alone": FMALoop(1).flops,
        }

    def _ours(self, handles: Mapping[str, int | None], arrays: Mapping[str, Array]) -> _Entrant:
        packing, main = handles["packing"], handles["main"]
        assert main is not None
        first = None if packing is None else self._kernels.by_handle(packing)
        return _Entrant.of_kernels(first, self._kernels.by_handle(main), arrays)


def gpu_peer(request: Request) -> dict[str, Any]:
    """Time PyTorch on the GPU of this machine.

    Parameters: ``job`` and ``roles`` as of `Contests.contest`, ``threads``; and the arrays.

    Returns ``seconds``, the median time; or ``absent``, the reason why there is none.
    """
    try:
        job = _job(request.params, request.arrays)
        return {"seconds": torch_peer.seconds_on_gpu(job), "absent": ""}
    except Absent as reason:
        return {"seconds": None, "absent": str(reason)}


@dataclass
class _Entrant:
    """Our kernel, or a peer, in a contest."""

    call: Callable[[], object]
    outputs: Mapping[str, Array] = field(default_factory=dict)
    way: str = ""
    difference: float | None = None
    """Largest difference from the right result, as a fraction of our bound."""

    @staticmethod
    def of_kernels(
        packing: Function | None, main: Function, arrays: Mapping[str, Array]
    ) -> _Entrant:
        """Return a kernel as an entrant; `packing`, if given, first packs one of its inputs."""
        outputs = {
            p.name: aligned(p.static_shape, dtypes.to_numpy(p.dtype))
            for p in main.params
            if p.is_output
        }
        inputs = {p.name: arrays[INPUT + p.name] for p in main.params if not p.is_output}
        if packing is None:
            own = [{**inputs, **outputs}[param.name] for param in main.params]
            return _Entrant(lambda: main(*own), outputs)
        given, packed = packing.params
        source = arrays[PLAIN + given.name.removesuffix(GIVEN)].reshape(given.static_shape)
        panels = aligned(packed.static_shape, dtypes.to_numpy(packed.dtype))
        inputs[packed.name] = panels.reshape(inputs[packed.name].shape)
        own = [{**inputs, **outputs}[param.name] for param in main.params]

        def call() -> None:
            packing(source, panels)
            main(*own)

        return _Entrant(call, outputs)

    def verify(self, arrays: Mapping[str, Array]) -> float:
        """Run once and compare; return the largest difference as a fraction of the bound."""
        self.call()
        worst = 0.0
        for name, got in self.outputs.items():
            worst = max(
                worst, _difference(name, got, arrays[EXPECTED + name], arrays[BOUND + name])
            )
        return worst


def _measure(
    entrants: Mapping[str, _Entrant], count: int, limits: Mapping[str, Any]
) -> dict[str, Timing]:
    """Time all entrants in alternation."""
    return alternated({name: each.call for name, each in entrants.items()}, count, limits)


def _peers(
    names: Sequence[str],
    job: Job,
    arrays: Mapping[str, Array],
    baselines: Mapping[str, Callable[[Job], Sequence[Offer]]],
) -> tuple[dict[str, _Entrant], dict[str, str]]:
    """Return an entrant for each peer that computes the job, and why others do not."""
    makers = {name: REGISTRY[name] for name in names}
    found, absent = {}, {}
    for name, make in {**makers, **baselines}.items():
        try:
            found[name] = _fastest(make(job), arrays, job.threads)
        except Absent as reason:
            absent[name] = str(reason)
        except Exception as error:  # of a library that is not ours
            absent[name] = f"{type(error).__name__}: {error}"
    return found, absent


def _fastest(offers: Sequence[Offer], arrays: Mapping[str, Array], count: int) -> _Entrant:
    """Return the fastest offer of a peer, among those with a right result."""
    outputs = [name.removeprefix(EXPECTED) for name in arrays if name.startswith(EXPECTED)]
    right, refused = [], ""
    for offer in offers:
        if not offer.computes_the_work:
            right.append(_Entrant(offer.call, {}, offer.way))
            continue
        offer.call()
        found = offer.result()
        try:
            difference = max(
                _difference(name, got, arrays[EXPECTED + name],
                            OTHER_COMPUTATION * arrays[BOUND + name])
                for name, got in zip(
                    outputs, found if isinstance(found, list) else [found], strict=True
                )
            )  # fmt: skip
            right.append(_Entrant(offer.call, {}, offer.way, difference * OTHER_COMPUTATION))
        except MeasurementError as error:
            refused = f"computes something else: {error.problem}, {error.got}"
    if not right:
        raise Absent(refused)
    if len(right) == 1:
        return right[0]
    trials = _measure({str(n): entrant for n, entrant in enumerate(right)}, count, _TRIALS)
    return right[int(min(trials, key=lambda n: trials[n].median_s))]


def _job(params: Mapping[str, Any], arrays: Mapping[str, Array]) -> Job:
    given = params["job"]
    roles = {role: arrays[name] for role, name in params["roles"].items()}
    return Job(
        **{**given, "epilogue": tuple(given["epilogue"]), "out": tuple(given["out"])},
        threads=params["threads"],
        arrays=roles,
    )


def _difference(name: str, got: Array, expected: Array, bound: Array) -> float:
    """Return the largest difference as a fraction of the bound; refuse a wrong result."""
    if got.shape != expected.shape:
        raise MeasurementError(
            f"verify {name}", "another shape", got=got.shape, expected=expected.shape
        )
    found = differences(got, expected, bound)
    index = found.first
    if index is not None:
        raise MeasurementError(
            f"verify {name}",
            f"{np.count_nonzero(found.wrong)} of {found.wrong.size} elements are wrong",
            got=f"{got[index]:.9g} at {list(index)}",
            expected=f"{expected[index]:.9g} within {bound[index]:.3g}",
        )
    return found.worst


def main() -> None:
    """Answer requests until the pipe closes."""
    llvm.version()
    server = threading.Thread(target=serve, args=(Contests().entries(),))
    server.start()
    server.join()


if __name__ == "__main__":
    main()
