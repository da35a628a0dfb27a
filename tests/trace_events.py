"""What the trace-event format asks of a file, as checks of the events that timelines use.

**Source:** N. Duca, D. Sinclair, "Trace Event Format", 2013: complete events (X), flow events
(s, f), metadata (M). A viewer draws a flow from the slice that encloses its start to the one that
encloses its end ("bp": "e").
"""

from bisect import bisect_right
from collections import defaultdict
from itertools import pairwise

FIELDS = {
    "X": {"name": str, "cat": str, "ts": float, "dur": float, "pid": int, "tid": int, "args": dict},
    "s": {"name": str, "cat": str, "ts": float, "id": int, "pid": int, "tid": int},
    "f": {"name": str, "cat": str, "ts": float, "id": int, "pid": int, "tid": int, "bp": str},
    "M": {"name": str, "pid": int, "tid": int, "args": dict},
}


def problems(trace):
    """Yield what is wrong with a trace."""
    events = trace["traceEvents"]
    for n, event in enumerate(events):
        yield from (f"event {n}: {text}" for text in _wrong_fields(event))
    yield from _unnamed(events)
    slices = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            slices[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for thread, own in slices.items():
        for (_, end), (after, _) in pairwise(own):
            if after < end - 1e-9:
                yield f"thread {thread}: an event begins at {after}, before {end}"
    yield from _wrong_flows(events, slices)


def _wrong_fields(event):
    wanted = FIELDS.get(event.get("ph"))
    if wanted is None:
        yield f"unknown phase {event.get('ph')!r}"
        return
    if missing := {*wanted} - {*event}:
        yield f"without {sorted(missing)}"
    if other := {*event} - {*wanted} - {"ph"}:
        yield f"with {sorted(other)}"
    for name, kind in wanted.items():
        kinds = (int, float) if kind is float else (kind,)
        if name in event and type(event[name]) not in kinds:
            yield f"{name} is {event[name]!r}"
    if event.get("ts", 0) < 0 or event.get("dur", 1) <= 0:
        yield f"time {event.get('ts')}, {event.get('dur')}"
    if event.get("bp", "e") != "e":
        yield f"binding point {event['bp']!r}"


def _unnamed(events):
    """Yield threads and processes that have no name, or two."""
    for name, keys in (("process_name", ("pid",)), ("thread_name", ("pid", "tid"))):
        named = [tuple(e[k] for k in keys) for e in events if e["ph"] == "M" and e["name"] == name]
        used = {tuple(e[k] for k in keys) for e in events if e["ph"] != "M"}
        if len({*named}) != len(named):
            yield f"two {name} of one"
        yield from (f"no {name} for {key}" for key in used - {*named})


def _wrong_flows(events, slices):
    """Yield flows without both ends, that go back in time, or whose ends no event encloses."""
    ends = {phase: [e for e in events if e["ph"] == phase] for phase in "sf"}
    flows = {phase: {(e["cat"], e["name"], e["id"]): e for e in own} for phase, own in ends.items()}
    for phase, own in ends.items():
        if len(flows[phase]) != len(own):
            yield f"two events {phase!r} of one flow"
    yield from (f"flow {key} has one end" for key in flows["s"].keys() ^ flows["f"].keys())
    for key in flows["s"].keys() & flows["f"].keys():
        if flows["s"][key]["ts"] > flows["f"][key]["ts"]:
            yield f"flow {key} goes back in time"
    for event in ends["s"] + ends["f"]:
        own = slices[event["pid"], event["tid"]]
        place = bisect_right(own, (event["ts"], float("inf"))) - 1
        if place < 0 or not own[place][0] <= event["ts"] < own[place][1]:
            yield f"flow {event['id']}: no event encloses its {event['ph']!r}"
