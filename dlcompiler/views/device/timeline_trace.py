"""Write a timeline in the trace-event format of Chrome, which Perfetto opens.

**Source:** N. Duca, D. Sinclair, "Trace Event Format", 2013: complete events ("X"), flow events
("s", "f") and metadata ("M"); times in microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from dlcompiler.pipeline.timelines import Timeline
from dlcompiler.simulate.accelerators.listing import instruction_text, origin_text
from dlcompiler.simulate.accelerators.timing.run import TimedRun
from dlcompiler.simulate.accelerators.timing.waits import tokens_of
from dlcompiler.views.device.timeline_lanes import model_of, provenance_of_runs
from dlcompiler.views.loops.line_keys import keys_of

Event = Mapping[str, Any]


def timeline_trace(timeline: Timeline) -> str:
    """Return a timeline as a trace of events in JSON.

    Programs are processes, engines are threads, instructions are complete events, tokens are flows.
    Times are those of the accelerator's clock; the arguments of an event have its cycles. The whole
    programs are written, whatever part is shown.
    """
    events: list[Event] = []
    tokens = 0
    for number, row in enumerate(model_of(timeline).rows, 1):
        events.append(_named("process_name", number, 0, f"{row.name} (simulated)"))
        for thread, lane in enumerate(row.lanes):
            events.append(_named("thread_name", number, thread, lane.engine))
        threads = {lane.engine: thread for thread, lane in enumerate(row.lanes)}
        for run, begin in zip(row.parts, row.begins, strict=True):
            part = _Part(run, begin, number, threads)
            events += part.instructions()
            flows = list(part.flows(tokens))
            tokens += len(flows) // 2
            events += flows
    clocks = {
        f"{run.program.accelerator.clock_hz:g} Hz" for parts in timeline.runs for run in parts
    }
    about = {
        "times": provenance_of_runs([run for parts in timeline.runs for run in parts]),
        "clock": ", ".join(sorted(clocks)),
    }
    trace = {"traceEvents": events, "displayTimeUnit": "ns", "otherData": about}
    return json.dumps(trace, separators=(",", ":"))


def _named(what: str, process: int, thread: int, name: str) -> Event:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name}}


class _Part:
    """The events of one run."""

    def __init__(self, run: TimedRun, begin: int, process: int, threads: Mapping[str, int]) -> None:
        self.run, self.process = run, process
        self.steps = run.program.steps
        self.start, self.end = (run.start + begin).tolist(), (run.end + begin).tolist()
        self.us = 1e6 / run.program.accelerator.clock_hz
        engines = [each.name for each in run.program.accelerator.engines]
        self.threads = [threads[engines[n]] for n in run.engine.tolist()]

    def instructions(self) -> Iterator[Event]:
        """Yield an event for each instruction."""
        accelerator = self.run.program.accelerator
        known: dict[int, dict[str, str]] = {}
        for n, step in enumerate(self.steps):
            origin = known.get(id(step.origin))
            if origin is None:
                origin = known[id(step.origin)] = _origin(step.origin)
            args = {
                "number": n, "instruction": instruction_text(accelerator, step), **origin,
                "first cycle": self.start[n], "cycles": self.end[n] - self.start[n],
            }  # fmt: skip
            wait = self.run.wait(n)
            if wait.cycles or wait.port_cycles:
                args["waits"] = str(wait)
            yield {
                "ph": "X", "name": step.instruction.name, "cat": "instruction",
                "pid": self.process, "tid": self.threads[n], "ts": self._time(self.start[n]),
                "dur": self._time(self.end[n] - self.start[n]), "args": args,
            }  # fmt: skip

    def _time(self, cycle: float) -> float:
        """Return when a cycle begins [us], to a tenth of a nanosecond."""
        return round(cycle * self.us, 4)

    def flows(self, first: int) -> Iterator[Event]:
        """Yield two events for each token, with numbers from `first` on.

        A flow belongs to the event that surrounds its time: it begins in the last cycle of the
        instruction that pushes, and ends in the first of the one that pops.
        """
        for number, token in enumerate(tokens_of(self.run.program), first):
            common = {"name": token.queue, "cat": "token", "id": number, "pid": self.process}
            source, sink = token.pushed_by, token.popped_by
            yield {**common, "ph": "s", "tid": self.threads[source],
                   "ts": self._time(self.end[source] - 0.5)}  # fmt: skip
            yield {**common, "ph": "f", "bp": "e", "tid": self.threads[sink],
                   "ts": self._time(self.start[sink] + 0.5)}  # fmt: skip


def _origin(origin: Any) -> dict[str, str]:
    """Return the statement and the loops that instructions come from."""
    if origin is None:
        return {}
    keys = keys_of(origin)
    return {"statement": origin_text(origin), **({"loops": ", ".join(keys)} if keys else {})}
