"""Candidates for a simulated GPU: their code for this CPU, and their predicted times.

This module is also a worker process, ``python -m dlcompiler.autotune.pools.simulation``: besides
compiling and checking, as `dlcompiler.measurement.worker`, it generates the code of configs of the
library's operators, which a text names. So all of a candidate's work runs beside that of others.
"""

from __future__ import annotations

import gc
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dlcompiler.autotune.candidate import Candidate as Schedulable
from dlcompiler.autotune.candidate import TemplateCandidate
from dlcompiler.errors import InternalError, UserError
from dlcompiler.measurement.candidates import Candidate, Measured
from dlcompiler.measurement.checked import CheckedKernels
from dlcompiler.measurement.worker import Kernels
from dlcompiler.ops import Operator, names, operator
from dlcompiler.pipeline import lower_program
from dlcompiler.pipeline.executables import source_for_host
from dlcompiler.pipeline.gpu_report import predicted_s
from dlcompiler.runtime import llvm
from dlcompiler.runtime.fork_server import serve_in_children
from dlcompiler.runtime.serve import Answer, Request
from dlcompiler.runtime.source import Interface, Source, Text
from dlcompiler.space import Config, Workload
from dlcompiler.target import Target, resolve

WORKER_MODULE = "dlcompiler.autotune.pools.simulation"
_COLLECTED_AFTER = 100_000
_OWN = "dlcompiler.ops."


@dataclass(frozen=True, slots=True)
class Made:
    """A candidate: its code for this CPU, and its time on the GPU."""

    code: Candidate
    seconds: float


def make(item: Schedulable, name: str, target: Target, best_s: float) -> Made | Measured:
    """Schedule a candidate and predict its time; if it is refused, return that as a result.

    Parameters
    ----------
    item : Candidate
        What is scheduled.
    name : str
        Name of the kernel.
    target : Target
        The simulated GPU.
    best_s : float
        The shortest time so far [s]. Only a faster candidate is analysed for races, which takes
        longer than all else: the result of a search is always one that was. Infinite: each is.
    """
    try:
        schedule, args = item.schedule(target)
        options: Mapping[str, Any] = {"verify_passes": False, "check_races": False}
        program = lower_program(schedule, args, target, name, **options)
        seconds = predicted_s(program, target)
        if seconds is None:
            return Measured("refused", message="no block of it fits on a multiprocessor")
        if seconds < best_s:
            lower_program(schedule, args, target, name, verify_passes=False)
        return Made(Candidate(source_for_host(program)), seconds)
    except UserError as error:
        return Measured("refused", message=str(error))
    except InternalError as error:
        return Measured("build error", message=str(error))


def described(item: Schedulable, target: Target) -> dict[str, Any] | None:
    """Return a candidate as JSON values for a worker; None if a text does not describe it.

    Only schedules of the library are known in another process, not those that a program added.
    """
    if not isinstance(item, TemplateCandidate) or item.operator.name not in names():
        return None
    is_own = operator(item.operator.name) is item.operator and _is_own(item.operator, target)
    if not is_own or not _is_known(target):
        return None
    found = {
        "operator": item.operator.name, "workload": item.workload.to_json(),
        "config": item.config.to_json(), "target": target.name,
    }  # fmt: skip
    return found if _is_same(item, found) else None


def _is_own(item: Operator, target: Target) -> bool:
    entry = item.schedule_for(target)
    made_by = (entry.apply,) if entry.define is None else (entry.apply, entry.define)
    return all(each.__module__.startswith(_OWN) for each in made_by)


def _is_known(target: Target) -> bool:
    try:
        return resolve(target.name) == target
    except UserError:
        return False


def _is_same(item: TemplateCandidate, found: Mapping[str, Any]) -> bool:
    """Tell whether a text preserves all parameters: lists, for example, become others."""
    read = json.loads(json.dumps(found))
    same = Workload.from_json(read["workload"]) == item.workload
    return same and Config.from_json(read["config"]) == item.config


def made_of(value: Mapping[str, Any], text: bytes) -> Made | Measured:
    """Read the answer of `generate`."""
    if "refused" in value:
        return Measured(value["outcome"], message=value["refused"])
    interface = Interface.from_json(value["interface"])
    source = Source(value["language"], {value["language"]: Text(text.decode())}, interface)
    return Made(Candidate(source), value["seconds"])


def generate(request: Request) -> Answer:
    """Generate a candidate in a worker: what `described` returns, ``name`` and ``best_s``.

    Returns ``seconds``, ``language`` and ``interface``, and the code as ``data``; or ``outcome``
    and the reason as ``refused``.
    """
    params = request.params
    workload, config = Workload.from_json(params["workload"]), Config.from_json(params["config"])
    item = TemplateCandidate(operator(params["operator"]), workload, config)
    best_s = math.inf if params["best_s"] is None else params["best_s"]
    made = make(item, params["name"], resolve(params["target"]), best_s)
    if isinstance(made, Measured):
        return Answer({"outcome": made.outcome, "refused": made.message})
    source = made.code.source
    answer = {
        "seconds": made.seconds, "language": source.language,
        "interface": source.interface.to_json(),
    }  # fmt: skip
    return Answer(answer, source.text.encode())


def main() -> None:
    """Answer requests until the pipe closes."""
    llvm.version()  # import LLVM now: starting a process is not part of any measurement
    gc.set_threshold(_COLLECTED_AFTER)
    own = {"generate": generate}
    serve_in_children({**Kernels().entries(), **CheckedKernels().entries(), **own})


if __name__ == "__main__":
    main()
