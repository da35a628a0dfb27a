"""The ladder and the roofline of a session, with a stopwatch that times nothing."""

import itertools
import threading
from dataclasses import replace

import pytest

from dlcompiler import te
from dlcompiler.errors import MeasurementError
from dlcompiler.measurement.ceilings import Ceilings
from dlcompiler.runtime.provenance import Provenance
from dlcompiler.runtime.timing import Paired, Timing
from dlcompiler.schedule import create_schedule
from dlcompiler.target import resolve
from dlcompiler.te.notation.program import read_program
from tests.widgets.test_live_page import matmul
from tests.widgets.test_run import VERIFIED

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer
from dlcompiler_widgets.explorer.machine import MEASURING, Machine
from dlcompiler_widgets.explorer.measuring import Measured
from dlcompiler_widgets.explorer.recording import record

FLOPS = 2.0 * 64**3
NUMBERS = itertools.count()
NAMES = [*(level.name for level in resolve("cpu").caches), "memory"]


def ceilings(threads=1, dtype="float32"):
    reads = tuple((name, 400.0 / (n + 1)) for n, name in enumerate(NAMES))
    return Ceilings(threads, dtype, 100.0 * threads, reads, Provenance("measured", "a processor"))


def measured(seconds, threads=1, numpy_s=None, flops=FLOPS, target=""):
    timing = Timing((seconds,) * 3, flops)
    if numpy_s is None:
        return Measured(timing, threads=threads, target=target)
    beside = Paired(Timing((numpy_s,) * 3, flops), timing, (numpy_s / seconds,) * 3)
    return Measured(timing, beside, "numpy.matmul", threads, target)


class Watch:
    """Answers at once; `asked` says for which ceilings it was asked."""

    def __init__(self, result=None, machine=ceilings):
        self.result = result or measured(0.002, numpy_s=0.001)
        self.machine = machine
        self.asked = []

    def verify(self, schedule, args, target):
        return VERIFIED

    def measure(self, schedule, args, target, name):
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    def ceilings(self, threads, dtype):
        self.asked.append((threads, dtype))
        found = self.machine(threads, dtype)
        if isinstance(found, Exception):
            raise found
        return found

    def cancel(self):
        pass


def explore(watch=None, steps=True, level="learn", **options):
    schedule, args = matmul()
    C = args[2]
    if steps:
        schedule[C].parallel(C.op.axis[0])
        schedule[C].vectorize(C.op.axis[1])
    return Explorer(
        schedule, args, name="matmul", stopwatch=watch or Watch(), level=level, **options
    )


def written(text, watch=None):
    program = read_program(text)
    schedule = create_schedule(list(program.outputs))
    return Explorer(schedule, program.args, stopwatch=watch or Watch(), level="learn")


def send(explorer, op, **args):
    explorer.intent = {"id": f"{op} {next(NUMBERS)}", "op": op, "args": args}
    explorer._session.machine.wait(30)
    return explorer.view


def run(explorer):
    send(explorer, "measure")
    explorer._measuring.wait(30)
    explorer._session.machine.wait(30)
    return explorer.view


def note(explorer, *results):
    for node, result in zip(explorer.schedule.node.path(), results, strict=True):
        if result is not None:
            node.notes["measured"] = result


# -- the ladder -----------------------------------------------------------------------------------


def test_a_run_becomes_a_step_beside_numpy_and_the_peak():
    explorer = explore()
    assert explorer.ladder["hint"].startswith("Run measures")
    view = run(explorer)
    assert [row["status"] for row in view["ladder"]["rows"]] == ["empty", "empty", "measured"]
    assert [line["text"] for line in view["ladder"]["lines"]] == [
        "numpy.matmul, 1 thread, measured: 0.524",
        "FMA peak, float32, 1 thread, measured: 100",
    ]
    assert view["ladder"]["hint"] == ""
    explorer.close()


def test_states_ahead_stay_after_a_click_on_an_earlier_one():
    explorer = explore()
    root = explorer.ladder["rows"][0]["id"]
    view = send(explorer, "jump", id=root)
    assert [row["title"] for row in view["ladder"]["rows"]] == [
        "create", "parallel C i", "vectorize C j"
    ]  # fmt: skip
    assert [row["is_here"] for row in view["ladder"]["rows"]] == [True, False, False]
    explorer.close()


def test_numpy_is_one_line_for_each_number_of_threads():
    explorer = explore()
    note(explorer, measured(0.004, 1, 0.002), measured(0.002, 2, 0.001), measured(0.001, 2, 0.003))
    view = send(explorer, "preset", preset="all")
    texts = [line["text"] for line in view["ladder"]["lines"][:2]]
    assert texts == [
        "numpy.matmul, 1 thread, measured: 0.262", "numpy.matmul, 2 threads, measured: 0.262"
    ]  # fmt: skip
    assert "2 threads" in view["ladder"]["lines"][2]["text"]
    explorer.close()


def test_a_program_without_a_numpy_function_says_so():
    explorer = written("B[i] = max(A[i], 0.0)\nA: [1000]")
    note(explorer, measured(0.001, flops=None))
    notes = send(explorer, "preset", preset="all")["ladder"]["notes"]
    assert notes == [
        "No NumPy function is known that computes this program.",
        "No peak: no float operations are counted in the program.",
    ]
    explorer.close()


def test_wrong_and_failed_runs_are_marked():
    explorer = explore(Watch(MeasurementError("measure matmul", "the worker's outcome is crashed")))
    row = run(explorer)["ladder"]["rows"][-1]
    assert (row["status"], row["value"]) == ("failed", "✕ failed")
    assert "the worker's outcome is crashed" in row["label"]
    explorer._stopwatch.result = measured(0.002)
    assert run(explorer)["ladder"]["rows"][-1]["status"] == "measured"
    explorer.schedule.node.notes["wrong"] = "3 elements differ"
    row = send(explorer, "undo")["ladder"]["rows"][-1]
    assert (row["status"], row["share"]) == ("wrong", 0)
    explorer.close()


def test_a_time_that_is_only_a_text_has_no_bar():
    explorer = explore()
    note(explorer, None, None, "2 ms in another session")
    row = send(explorer, "preset", preset="all")["ladder"]["rows"][-1]
    assert (row["status"], row["share"]) == ("empty", 0)
    assert "noted as 2 ms in another session" in row["label"]
    explorer.close()


def test_a_time_for_another_target_says_so():
    explorer = explore()
    note(explorer, None, None, measured(0.002, target="x86-64-avx2"))
    row = send(explorer, "preset", preset="all")["ladder"]["rows"][-1]
    assert "code for x86-64-avx2" in row["label"]
    explorer.close()


def test_what_is_not_measured_here_says_why():
    explorer = explore(target="aarch64")
    assert "aarch64" in explorer.ladder["notes"][0]
    assert explorer.ladder["hint"] == ""
    assert explorer.ladder["rows"][0]["label"] == "create; not measured"
    explorer.close()


@pytest.mark.parametrize("level", ["learn", "work", "all"])
def test_the_ladder_is_a_pane_for_learners_and_a_picture_elsewhere(level):
    explorer = explore(level=level)
    is_pane = "ladder" in explorer.layout_of_panes["visible"]
    is_tab = "ladder" in [tab["name"] for tab in explorer.picture["tabs"]]
    assert (is_pane, is_tab) == ((True, False) if level == "learn" else (False, True))
    explorer.close()


def test_the_program_stands_beside_the_picture_for_learners():
    explorer = explore(level="learn")
    assert "text" in explorer.layout_of_panes["visible"]
    assert [tab["name"] for tab in explorer.text["tabs"]] == ["notation", "loops", "python"]
    assert explorer.text["tab"] == "loops"
    assert explorer.text["lines"]
    send(explorer, "level", level="work")
    send(explorer, "text", tab="passes")
    assert send(explorer, "level", level="learn")["text"]["tab"] == "loops"
    assert send(explorer, "level", level="work")["text"]["tab"] == "passes"
    explorer.close()


# -- the machine ----------------------------------------------------------------------------------


def test_the_machine_is_measured_once_and_meanwhile_it_says_so():
    go = threading.Event()

    def slow(threads, dtype):
        assert go.wait(30)
        return ceilings(threads, dtype)

    watch = Watch(machine=slow)
    explorer = explore(watch)
    note(explorer, None, None, measured(0.002))
    for _ in range(2):
        explorer.intent = {"id": f"preset {_}", "op": "preset", "args": {"preset": "all"}}
        assert explorer.ladder["notes"][-1] == f"No peak: {MEASURING}"
    go.set()
    explorer._session.machine.wait(30)
    assert explorer.ladder["lines"][-1]["text"].startswith("FMA peak")
    assert watch.asked == [(1, "float32")]
    explorer.close()


def test_a_machine_that_cannot_be_measured_says_why():
    watch = Watch(machine=lambda *key: MeasurementError("measure", "no answer within 60 s"))
    explorer = explore(watch)
    view = run(explorer)
    assert view["ladder"]["notes"][-1].endswith("could not be measured: no answer within 60 s")
    send(explorer, "preset", preset="all")
    assert len(watch.asked) == 1  # not again with each click
    watch.machine = ceilings
    assert "Measuring the machine again" in send(explorer, "machine")["status"]["text"]
    assert explorer.ladder["lines"][-1]["text"].startswith("FMA peak")
    explorer.close()


@pytest.mark.parametrize(
    ("result", "rates"),
    [(measured(0.002), [0.1, 0.2, 500.0]), (measured(0.002, numpy_s=0.00002), [3.0, 20.0, 500.0])],
    ids=["state", "numpy"],
)
def test_ceilings_that_a_program_exceeds_are_measured_again(result, rates):
    rates = iter(rates)

    def busy(threads, dtype):
        return replace(ceilings(threads, dtype), peak_gflops=next(rates))

    watch = Watch(machine=busy)
    explorer = explore(watch)
    note(explorer, None, None, result)
    send(explorer, "preset", preset="all")
    for _ in range(4):
        send(explorer, "preset", preset="all")
    assert len(watch.asked) == 3
    assert explorer.ladder["lines"][-1]["text"].endswith(": 500")
    explorer.close()


def test_ceilings_are_not_doubted_for_ever():
    watch = Watch(machine=lambda *key: replace(ceilings(*key), peak_gflops=0.1))
    explorer = explore(watch)
    note(explorer, None, None, measured(0.002))
    for _ in range(6):
        send(explorer, "level", level="work")
        send(explorer, "picture", tab="roofline")
    assert len(watch.asked) == 3
    scene = explorer.picture["model"]["scene"]
    assert "FMA peak: the machine was busy" in scene["summary"]
    explorer.close()


def test_several_threads_are_not_said_to_reach_less_than_one():
    def busy(threads, dtype):
        found = ceilings(threads, dtype)
        return found if threads == 1 else replace(found, peak_gflops=20.0)

    machine = Machine(busy)
    for threads in (1, 2):
        machine.ceilings(threads, "float32")
        machine.wait(10)
    assert machine.ceilings(2, "float32").peak_gflops == 100.0
    assert machine.ceilings(2, "float32").threads == 2
    assert machine.ceilings(2, "float32") is machine.ceilings(2, "float32")  # it can be doubted
    machine.close()


def test_nothing_is_measured_before_a_picture_needs_it():
    watch = Watch()
    explorer = explore(watch)
    send(explorer, "undo")
    assert watch.asked == []
    explorer.close()


def test_a_stopwatch_that_measures_no_machine():
    class Bare:
        verify, measure, cancel = Watch.verify, Watch.measure, Watch.cancel
        result = measured(0.002)

    explorer = explore(Bare())
    assert "not measured" in run(explorer)["ladder"]["notes"][-1]
    explorer.close()


# -- the roofline ---------------------------------------------------------------------------------


def opened(explorer):
    send(explorer, "level", level="work")
    return send(explorer, "picture", tab="roofline")["picture"]


def nothing(explorer):
    """What stands in place of the roofline."""
    scene = opened(explorer)["model"]["scene"]
    assert scene["marks"][0]["text"] == "There is nothing to draw."
    return scene["summary"]


def test_every_measured_state_is_a_point():
    explorer = explore()
    note(explorer, measured(0.004), None, measured(0.001))
    picture = opened(explorer)
    picture = explorer.picture
    keys = [
        mark["keys"] for mark in picture["model"]["scene"]["marks"] if mark.get("glyph") == "disc"
    ]
    nodes = explorer.schedule.node.path()
    assert keys == [[nodes[0].id], [nodes[2].id]]
    assert picture["error"] is None
    assert "ceiling" in picture["model"]["scene"]["summary"]
    explorer.close()


def test_traffic_is_that_of_the_memory_scopes():
    explorer = explore()
    note(explorer, None, None, measured(0.001))
    opened(explorer)
    rows = explorer.picture["model"]["scene"]["table"]["rows"]
    here = [row for row in rows if row[0] == 1]
    assert [row[4] for row in here] == [*NAMES[1:]]
    assert {row[6] for row in here} == {"predicted"}
    explorer.close()


def test_the_ceilings_are_those_of_the_threads_of_the_current_state():
    watch = Watch()
    explorer = explore(watch)
    note(explorer, measured(0.004, 1), None, measured(0.001, 2))
    opened(explorer)
    assert (2, "float32") in watch.asked
    send(explorer, "jump", id=explorer.ladder["rows"][0]["id"])
    assert (1, "float32") in watch.asked
    explorer.close()


@pytest.mark.parametrize(
    ("target", "words"),
    [("aarch64", "aarch64"), ("v100", "v100 run on the simulator"), ("c", "Code in C")],
)
def test_a_target_that_is_not_this_machine_has_none_and_says_why(target, words):
    explorer = Explorer(*matmul(), target=target, stopwatch=Watch())
    summary = nothing(explorer)
    assert summary.startswith("No roofline: ")
    assert words in summary
    assert "Choose the target cpu: this machine." in summary
    explorer.close()


def test_a_program_of_integers_has_none_and_says_why():
    explorer = written("B[i] = A[i] + 1\nA: int32[100]")
    assert "no float operations" in nothing(explorer)
    explorer.close()


def test_symbolic_shapes_have_none():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    explorer = Explorer(create_schedule(B.op), [A, B], stopwatch=Watch())
    assert "known only when it runs" in nothing(explorer)
    explorer.close()


def test_a_double_precision_program_has_its_own_peak():
    watch = Watch()
    explorer = written("B[i] = A[i] + 1.0\nA: float64[100]", watch)
    opened(explorer)
    assert watch.asked[0][1] == "float64"
    explorer.close()


def test_a_dtype_without_a_measured_peak_says_so():
    A = te.placeholder((16, 16), "float16", name="A")
    B = te.compute((16, 16), lambda i, j: A[i, j] + A[j, i], name="B")
    explorer = Explorer(create_schedule(B.op), [A, B], stopwatch=Watch())
    assert "measured for float32 or float64, not for float16" in nothing(explorer)
    note(explorer, measured(0.001))
    notes = send(explorer, "level", level="learn")["ladder"]["notes"]
    assert notes[-1].startswith("No peak: the peak is measured for float32")
    assert explorer._stopwatch.asked == []
    explorer.close()


def test_a_state_with_a_pending_obligation_is_an_empty_step():
    n = 8
    A = te.placeholder((n, n), name="A")
    B = te.compute((n, n), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((n, n), lambda i, j: B[i, j] * 2.0, name="C")
    s = create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[1])
    s[C].split(C.op.axis[1], factor=4)
    explorer = Explorer(s, [A, C], stopwatch=Watch(), predict=True, level="learn")
    assert [row["status"] for row in explorer.ladder["rows"]] == ["empty"] * 3
    assert "No state is measured" in opened(explorer)["model"]["scene"]["summary"]
    explorer.close()


@pytest.mark.campaign
def test_a_recording_has_what_is_known_and_measures_nothing():
    watch = Watch()
    explorer = explore(watch)
    run(explorer)
    asked = list(watch.asked)
    data = record(explorer._session, explorer.layout_of_panes["visible"], [])
    shown = data["states"][data["here"]]["shown"]
    ladder = data["values"][shown["ladder"][""][""]]
    assert ladder["lines"][-1]["text"].startswith("FMA peak")
    places = [state["shown"]["ladder"][""][""] for state in data["states"].values()]
    assert len(set(places)) == 1  # one for the whole branch
    send(explorer, "level", level="work")
    data = record(explorer._session, explorer.layout_of_panes["visible"], [])
    (place,) = set(data["states"][data["here"]]["shown"]["picture"]["roofline"].values())
    assert data["values"][place]["error"] is None
    assert watch.asked == asked
    ladders = [s["shown"]["picture"]["ladder"].values() for s in data["states"].values()]
    assert len({place for each in ladders for place in each}) == 1
    explorer.close()


# -- other dtypes, other targets ------------------------------------------------------------------


def test_the_peak_is_that_of_the_operations_not_of_the_result():
    watch = Watch(measured(0.001, flops=100.0))
    explorer = written("A: float64[8]\nB[i] = int8(A[i] * 2.0)", watch)
    run(explorer)
    assert watch.asked == [(1, "float64")]
    assert "FMA peak, float64" in explorer.ladder["lines"][-1]["text"]
    explorer.close()


def test_operations_on_several_dtypes_have_no_single_peak():
    watch = Watch(measured(0.001, flops=100.0))
    explorer = written("A: float64[8]\nB[i] = float32(A[i] * 2.0) + float32(1.0)", watch)
    run(explorer)
    assert watch.asked == []
    assert explorer.ladder["notes"][-1] == (
        "No peak: the peak is measured for float32 or float64, not for float32 and float64."
    )
    explorer.close()


@pytest.mark.parametrize(("rate", "text"), [(0.524, "0.524"), (999.6, "1,000"), (1234.5, "1,234")])
def test_a_rate_is_the_same_text_everywhere(rate, text):
    explorer = explore(Watch(measured(1.0, flops=rate * 1e9)))
    view = run(explorer)
    assert f", {text} GFLOP/s" in str(explorer.schedule.node.notes["measured"])
    assert view["ladder"]["rows"][-1]["value"] == text
    assert f", {text} GFLOP/s" in view["ladder"]["rows"][-1]["label"]
    explorer.close()


def test_a_point_for_another_target_says_so():
    explorer = explore()
    note(explorer, measured(0.004, target="x86-64-avx2"), None, measured(0.001))
    assert "code for x86-64-avx2" in str(opened(explorer)["model"]["scene"]["table"])
    assert explorer.history["rows"][0]["time"] == "4 ms, x86-64-avx2"
    explorer.close()
