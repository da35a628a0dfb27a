"""The trace of a timeline: events as Chrome's format defines them, which Perfetto opens."""

import json
from itertools import pairwise

import pytest

from dlcompiler.errors import UserError
from dlcompiler.pipeline.timelines import Timeline
from dlcompiler.simulate.accelerators.timing.run import time_program
from dlcompiler.simulate.accelerators.timing.waits import tokens_of
from tests.accelerator_programs import product, repeated
from tests.trace_events import problems

HOSTILE = '"}],"x":"</script>\u2028'


@pytest.fixture(scope="module")
def kernel():
    return product()


def saved(timeline, folder):
    timeline.save(folder / "trace.json")
    return json.loads((folder / "trace.json").read_text(encoding="utf-8"))


def of(trace, phase):
    return [event for event in trace["traceEvents"] if event["ph"] == phase]


def test_engines_are_threads_and_instructions_are_events_in_order(kernel, tmp_path):
    trace = saved(kernel.timeline(), tmp_path)
    assert trace["otherData"] == {"times": "simulated, profile B", "clock": "1e+08 Hz"}
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in of(trace, "M")
             if e["name"] == "thread_name"}  # fmt: skip
    assert names == {(1, 0): "load", (1, 1): "compute", (1, 2): "store"}
    run = kernel.report().runs[0]
    events = of(trace, "X")
    assert [e["args"]["first cycle"] for e in events] == run.start.tolist()
    assert [e["args"]["cycles"] for e in events] == (run.end - run.start).tolist()
    for event in events:
        assert event["ts"] * 100 == pytest.approx(event["args"]["first cycle"])
        assert event["dur"] * 100 == pytest.approx(event["args"]["cycles"])
    for thread in range(3):
        own = [e for e in events if e["tid"] == thread]
        assert all(a["ts"] + a["dur"] <= b["ts"] for a, b in pairwise(own))


def test_the_arguments_have_text_statement_loops_and_wait(kernel, tmp_path):
    events = of(saved(kernel.timeline(), tmp_path), "X")
    gemm = [e["args"] for e in events if e["name"] == "gemm" and "waits" in e["args"]][-1]
    assert gemm["instruction"].startswith("gemm uop_bgn=")
    assert gemm["statement"].startswith("acc[")
    assert "+= vta_gemm_1x16x16(A.inp[" in gemm["statement"]
    assert gemm["loops"].split(", ")[0] == "acc"
    assert "for a token load->compute of instruction" in gemm["waits"]


def test_tokens_are_flows_inside_the_events_of_their_instructions(kernel, tmp_path):
    trace = saved(kernel.timeline(kernel), tmp_path)
    starts, ends = of(trace, "s"), of(trace, "f")
    tokens = tokens_of(kernel.instructions)
    assert [e["id"] for e in starts] == [e["id"] for e in ends] == list(range(2 * len(tokens)))
    events = of(trace, "X")
    half = len(events) // 2
    for n, (start, end) in enumerate(zip(starts, ends, strict=True)):
        token, program = tokens[n % len(tokens)], n // len(tokens)
        for flow, number in ((start, token.pushed_by), (end, token.popped_by)):
            event = events[program * half + number]
            assert (flow["pid"], flow["tid"]) == (event["pid"], event["tid"])
            assert event["ts"] <= flow["ts"] < event["ts"] + event["dur"]
        assert start["ts"] < end["ts"]


def test_traces_are_as_the_format_asks(kernel, tmp_path):
    parts = tuple(time_program(repeated(count, "A")) for count in (30, 60))
    (runs,) = kernel.timeline().runs
    timeline = Timeline(("first", "first", HOSTILE), (runs, parts, parts[:1]))
    trace = saved(timeline, tmp_path)
    assert not list(problems(trace))
    assert {e["pid"] for e in trace["traceEvents"]} == {1, 2, 3}
    assert not list(problems(saved(kernel.timeline().between(100, 200), tmp_path)))


WRONG = [
    ("X", {"dur": 0}), ("X", {"ts": -1.0}), ("X", {"tid": "load"}), ("X", {"ph": "B"}),
    ("X", {"dur": 1e6}), ("X", {"pid": 9}), ("s", {"id": 10**6}), ("s", {"ts": 1e9}),
    ("f", {"bp": "s"}), ("f", {"ts": 0.0}), ("f", {"name": "other"}), ("M", {"args": None}),
]  # fmt: skip


@pytest.mark.parametrize(("phase", "change"), WRONG)
def test_the_checks_find_what_is_wrong(kernel, tmp_path, phase, change):
    trace = saved(kernel.timeline(), tmp_path)
    of(trace, phase)[0].update(change)
    assert list(problems(trace))


def test_a_large_program_is_written_as_valid_json(tmp_path):
    run = time_program(repeated(3_000))
    trace = saved(Timeline((HOSTILE,), ((run,),)), tmp_path)
    assert len(of(trace, "X")) == len(run.start)
    assert of(trace, "M")[0]["args"]["name"] == f"{HOSTILE} (simulated)"


def test_a_file_that_cannot_be_written_is_an_error(kernel, tmp_path):
    with pytest.raises(UserError):
        kernel.timeline().save(tmp_path / "none" / "trace.json")
