"""Run: verify every step and measure, beside the notebook."""

import threading
import time

import pytest

from dlcompiler import te
from dlcompiler.errors import MeasurementError, ScheduleError, VerificationError
from dlcompiler.measurement import Verified
from dlcompiler.runtime.timing import Paired, Timing
from dlcompiler.schedule import create_schedule
from dlcompiler.views.history.tree import history_tree
from tests.widgets.test_live_page import matmul

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer
from dlcompiler_widgets.explorer.measuring import Certificate, Measured, WorkerStopwatch, describe
from dlcompiler_widgets.explorer.noting import noted

HOSTILE = "</script><img src=x onerror=alert(1)>"
TIMING = Timing((0.002, 0.002, 0.003), flops=2.0 * 64**3)
MEASURED = Measured(TIMING)
MEASURED_THERE = Measured(TIMING, target="x86-64-sse2")
VERIFIED = Verified(("numpy", "interpreter"), (64, 64), 0, 0.3125)


class FakeStopwatch:
    """Answers when it is told to; `verdicts` are by the title of a state."""

    def __init__(self, result=MEASURED, verdicts=None):
        self.result = result
        self.verdicts = verdicts or {}
        self.verified = []
        self.measured = []
        self.go = threading.Event()
        self.cancelled = False

    def verify(self, schedule, args, target):
        assert self.go.wait(30)
        self.verified.append(schedule.node.title())
        return self._answer(self.verdicts.get(schedule.node.title(), VERIFIED))

    def measure(self, schedule, args, target, name):
        self.measured.append(schedule.node.title())
        return self._answer(self.result)

    def _answer(self, result):
        if isinstance(result, Exception):
            raise result
        return result

    def cancel(self):
        self.cancelled = True
        self.go.set()


def send(explorer, op, **args):
    explorer.intent = {"id": f"{op} {time.monotonic_ns()}", "op": op, "args": args}
    return explorer.view


def run(watch, then=lambda explorer: None):
    """Run on the second of two steps; returns the explorer when all is reported."""
    schedule, args = matmul()
    C = args[2]
    schedule[C].parallel(C.op.axis[0])
    schedule[C].vectorize(C.op.axis[1])
    explorer = Explorer(schedule, args, name="matmul", stopwatch=watch)
    assert send(explorer, "measure")["bar"]["measuring"]["state"] == "running"
    then(explorer)
    watch.go.set()
    explorer._measuring.wait(30)
    assert explorer.view["bar"]["measuring"] == {"state": "idle", "doing": ""}
    explorer.close()
    return explorer


def notes(explorer):
    return [row["notes"] for row in explorer.view["history"]["rows"]]


def test_every_step_is_verified_before_the_last_is_measured():
    watch = FakeStopwatch()
    explorer = run(watch)
    assert watch.verified == ["create", "parallel C i", "vectorize C j"]
    assert watch.measured == ["vectorize C j"]
    verified = {"verified": "against numpy and interpreter: largest error 31 % of the tolerance"}
    measured = {"measured": "2 ms ± 250 µs, 0.262 GFLOP/s"}
    assert notes(explorer) == [verified, verified, verified | measured]
    assert explorer.view["status"]["text"] == (
        "Measured: vectorize C j: 2 ms ± 250 µs, 0.262 GFLOP/s (n=3)."
    )


def test_what_is_verified_is_not_verified_again():
    watch = FakeStopwatch()
    before = Certificate("before", "cpu")
    explorer = run(watch, lambda e: e.schedule.node.parent.notes.update(verified=before))
    assert watch.verified == ["create", "vectorize C j"]
    assert notes(explorer)[1] == {"verified": "before"}


def test_what_is_verified_for_another_target_is_verified_again():
    watch = FakeStopwatch()
    other = Certificate("before", "x86-64-sse2")
    run(watch, lambda e: e.schedule.node.parent.notes.update(verified=other))
    assert watch.verified == ["create", "parallel C i", "vectorize C j"]


def test_notes_of_another_target_name_it():
    schedule, args = matmul()
    schedule.node.notes["measured"] = Measured(TIMING, target="x86-64-avx2")
    explorer = Explorer(schedule, args, "x86-64-avx2", name="matmul")
    assert explorer.view["bar"]["known"] == ["measured 2 ms ± 250 µs, 0.262 GFLOP/s"]
    assert send(explorer, "target", target="gpu")["bar"]["known"] == [
        "measured for x86-64-avx2: 2 ms ± 250 µs, 0.262 GFLOP/s"
    ]
    explorer.close()


@pytest.mark.parametrize(
    ("error", "kind"),
    [(VerificationError("verify C", "3 elements differ"), "wrong"),
     (MeasurementError("measure C", "it was killed"), "failed")],
)  # fmt: skip
def test_a_problem_on_one_target_is_none_of_another(error, kind):
    schedule, args = matmul()
    schedule.node.notes["measured"] = Measured(TIMING, target="x86-64-avx2")
    schedule.node.notes["verified"] = Certificate("well", "x86-64-avx2")
    noted(schedule.node, error, "x86-64-sse2")
    explorer = Explorer(schedule, args, "x86-64-avx2", name="matmul", level="learn")
    said = f"{kind} for x86-64-sse2: {error.problem}"
    assert said in explorer.view["bar"]["known"]
    (row,) = explorer.view["ladder"]["rows"]
    assert (row["status"], row["value"]) == ("measured", "0.262")
    assert said in row["label"]
    (past,) = history_tree(schedule.history, "x86-64-avx2")["rows"]
    assert past["notes"][kind] == f"{error.problem} (for x86-64-sse2)"
    there = send(explorer, "target", target="x86-64-sse2")
    (row,) = there["ladder"]["rows"]
    assert (row["status"] == "wrong") == (kind == "wrong")
    assert f"{kind} {error.problem}" in there["bar"]["known"]
    noted(schedule.node, VERIFIED, "x86-64-avx2")
    assert kind in schedule.node.notes
    noted(schedule.node, VERIFIED if kind == "wrong" else MEASURED_THERE, "x86-64-sse2")
    assert kind not in schedule.node.notes
    explorer.close()


@pytest.mark.campaign
def test_results_are_noted_where_they_were_found():
    explorer = run(FakeStopwatch(), lambda e: send(e, "undo"))
    assert explorer.schedule.node.title() == "parallel C i"
    assert "measured" in notes(explorer)[2]
    assert "measured" not in notes(explorer)[1]


def test_a_wrong_step_ends_the_run():
    error = VerificationError("verify C", "3 of 4096 elements differ", index=(0, 1), got=1.0)
    watch = FakeStopwatch(verdicts={"parallel C i": error})
    explorer = run(watch)
    assert (watch.verified, watch.measured) == (["create", "parallel C i"], [])
    assert notes(explorer)[1] == {"wrong": "3 of 4096 elements differ"}
    assert explorer.view["status"]["tone"] == "error"


def test_a_step_that_cannot_be_lowered_is_passed_over_but_not_the_last():
    watch = FakeStopwatch(verdicts={"parallel C i": ScheduleError("lower", "still owed")})
    assert notes(run(watch))[1] == {}
    watch = FakeStopwatch(verdicts={"vectorize C j": ScheduleError("lower", "still owed")})
    explorer = run(watch)
    assert (watch.measured, explorer.view["status"]["text"]) == ([], "lower: still owed")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (MeasurementError("measure matmul", "the worker's outcome is crashed"), "crashed"),
        (ValueError(HOSTILE), f"run: ValueError: {HOSTILE}"),
    ],
)
def test_a_failure_is_said(error, text):
    for watch in (FakeStopwatch(error), FakeStopwatch(verdicts={"create": error})):
        explorer = run(watch)
        assert explorer.view["status"]["tone"] == "error"
        assert text in explorer.view["status"]["text"]


def test_a_run_can_be_cancelled():
    watch = FakeStopwatch()
    explorer = run(watch, lambda e: send(e, "cancel"))
    assert watch.cancelled
    assert explorer.view["status"]["text"] == "The run was cancelled."
    assert watch.measured == []


def test_one_run_at_a_time():
    def again(explorer):
        assert "in progress already" in send(explorer, "measure")["status"]["text"]

    run(FakeStopwatch(), again)


def test_closing_ends_the_run():
    watch = FakeStopwatch()
    schedule, args = matmul()
    explorer = Explorer(schedule, args, stopwatch=watch)
    send(explorer, "measure")
    explorer.close()
    assert watch.cancelled


def test_measured_times_are_compared():
    explorer = run(FakeStopwatch())
    node = explorer.schedule.node
    node.parent.notes["measured"] = Measured(Timing((0.001, 0.001, 0.001)))
    view = send(explorer, "compare", a=node.parent.id, b=node.id)
    measured = next(f for f in view["compare"]["metrics"] if f["kind"] == "measured")
    assert (measured["change"], measured["a"], measured["unit"]) == ("2.0×", "1", "ms")
    assert {"measured", "verified"} == {note["name"] for note in view["compare"]["notes"]}


def test_numpy_beside_it_in_words():
    twice = Timing((0.001, 0.001, 0.001), flops=2.0 * 64**3)
    beside = Paired(twice, TIMING, (0.5, 0.5, 0.5))
    assert describe(Measured(TIMING, beside, "numpy.matmul", 2)) == (
        "2 ms ± 250 µs, 0.262 GFLOP/s; numpy.matmul 1 ms: 0.50× its speed, 2 threads each"
    )


# -- in a real worker -----------------------------------------------------------------------------


def finished(explorer):
    send(explorer, "measure")
    explorer._measuring.wait(100)
    view = explorer.view
    explorer.close()
    return view


@pytest.mark.campaign
def test_a_product_beside_numpy():
    schedule, args = matmul()
    schedule[args[2]].parallel(args[2].op.axis[0])
    view = finished(Explorer(schedule, args, name="matmul"))
    assert view["status"]["text"].startswith("Measured: parallel C i: ")
    assert "GFLOP/s; numpy.matmul " in str(schedule.node.notes["measured"])
    assert str(schedule.node.notes["verified"]).startswith("against numpy and interpreter")


def test_an_expression_that_numpy_has_no_function_for():
    explorer = Explorer.write("B[i] = max(A[i], 0.0)\nA: [1000]")
    assert "numpy" not in finished(explorer)["history"]["rows"][0]["notes"]["measured"]


@pytest.mark.campaign
def test_a_look_up_is_measured_at_indices_that_name_elements():
    T, ids = te.placeholder((10, 4), name="T"), te.placeholder((50,), "int32", name="I")
    C = te.compute((50, 4), lambda i, j: T[ids[i], j], name="C")
    view = finished(Explorer(create_schedule(C.op), [T, ids, C]))
    assert view["status"]["text"].startswith("Measured: ")


def test_what_would_fill_the_memory_is_refused():
    view = finished(Explorer.write("B[i, j] = A[i, j] + 1.0\nA: [100000, 100000]"))
    assert "too large for a run from a notebook" in view["status"]["text"]


def test_a_symbolic_shape_is_refused():
    view = finished(Explorer.write("B[i] = A[i] + 1.0\nA: [n]"))
    assert "its shape has symbols" in view["status"]["text"]


def test_cancel_ends_a_long_kernel():
    n = 4000
    A = te.placeholder((n, n), name="A")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(te.exp(A[i, k]) * A[j, k], axis=k), name="C")
    schedule = create_schedule(C.op)
    schedule.node.notes["verified"] = Certificate("taken as given", "cpu")
    watch = WorkerStopwatch()
    explorer = Explorer(schedule, [A, C], stopwatch=watch)
    send(explorer, "measure")
    time.sleep(2.0)
    start = time.monotonic()
    send(explorer, "cancel")
    explorer._measuring.wait(60)
    assert time.monotonic() - start < 30  # the kernel takes minutes
    assert explorer.view["status"]["text"] == "The run was cancelled."
    explorer.close()


def test_all_numbers_of_a_time_come_from_one_measurement():
    """The ratio is the quotient of the two times beside it, as a reader computes it."""
    alone = Timing((9e-3,) * 3, 2e8)
    beside = Paired(Timing((16.8e-3,) * 3), Timing((11.2e-3,) * 3, 2e8), (1.9, 2.0, 2.1))
    measured = Measured(alone, beside, "numpy.matmul", 1)
    assert str(measured) == (
        "11.2 ms ± 0 s, 17.9 GFLOP/s; numpy.matmul 16.8 ms: 1.5× its speed, 1 thread each"
    )
    assert measured.seconds == 11.2e-3
