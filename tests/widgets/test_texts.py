"""The tabs of the text pane: code is made beside the notebook, passes are walked through."""

import json
import threading

import pytest

from dlcompiler import te
from dlcompiler.bench.programs import six_step_gemm
from dlcompiler.errors import TargetError
from dlcompiler.schedule import create_schedule
from dlcompiler.target import resolve

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer
from dlcompiler_widgets.explorer.compiling import Compiling, job_of


def plain(n=16):
    A = te.placeholder((n, n), name="A")
    B = te.compute((n, n), lambda i, j: A[i, j] + 1.0, name="B")
    return create_schedule(B.op), [A, B]


class Opened:
    def __init__(self, schedule, args):
        self.widget = Explorer(schedule, args, name="f")
        self.sent = 0

    def send(self, op, **args):
        self.sent += 1
        self.widget.intent = {"id": f"test-{self.sent}", "op": op, "args": args}
        return self.widget.text

    def code(self, tab):
        """Open a tab of code, and wait for it."""
        self.send("text", tab=tab)
        assert self.widget._session.code.compiling.wait()
        return self.widget.text


@pytest.fixture
def opened():
    made = []

    def open_(schedule, args):
        made.append(Opened(schedule, args))
        return made[-1]

    yield open_
    for each in made:
        each.widget.close()


@pytest.mark.parametrize("tab", ["llvm", "assembly"])
def test_code_comes_when_it_is_ready(opened, tab):
    page = opened(*plain())
    first = page.send("text", tab=tab)
    assert (first["lines"], first["is_stale"], first["note"]) == ([], True, "compiling …")
    text = page.code(tab)
    assert text["lines"]
    assert (text["is_stale"], text["error"]) == (False, None)
    assert page.widget.reply["id"] is None


def test_old_code_stays_as_stale_until_the_new_is_there(opened):
    s, args = plain()
    page = opened(s, args)
    old = page.code("assembly")["lines"]
    i = s[args[1]].op.axis[0]
    s[args[1]].unroll(i)
    text = page.widget.text
    assert (text["lines"], text["is_stale"]) == (old, True)
    assert page.widget._session.code.compiling.wait()
    assert page.widget.text["lines"] != old
    assert not page.widget.text["is_stale"]
    page.send("undo")
    assert page.widget.text["lines"] == old
    assert not page.widget.text["is_stale"]


def test_a_state_that_cannot_be_lowered_says_why_in_each_tab(opened):
    s, args = plain()
    page = opened(s, args[1:])
    for tab in ("loops", "final", "passes"):
        assert "the arguments lack A" in page.send("text", tab=tab)["error"]["text"]
    for tab in ("llvm", "assembly"):
        assert "the arguments lack A" in page.code(tab)["error"]["text"]
    for tab in ("notation", "python"):
        assert page.send("text", tab=tab)["lines"]


class Broken:
    def assembly(self, text, options, name=""):
        raise TargetError("compile f", "LLVM cannot generate the code", got="crashed: SIGABRT")

    def cancel(self):
        pass

    close = cancel


def test_a_worker_that_fails_says_why_and_llvm_ir_is_there(opened):
    page = opened(*plain())
    page.widget._session.code.compiling._make_printer = Broken
    error = page.code("assembly")["error"]
    assert error["text"] == "compile f: LLVM cannot generate the code"
    assert ["got", "crashed: SIGABRT"] in error["details"]
    assert page.code("llvm")["lines"]


def test_a_worker_that_dies_is_replaced(opened):
    s, args = plain()
    page = opened(s, args)
    page.code("assembly")
    compiling = page.widget._session.code.compiling
    compiling._printer.cancel()
    s[args[1]].unroll(s[args[1]].op.axis[0])
    assert compiling.wait()
    assert page.widget.text["lines"]
    assert page.widget.text["error"] is None


class Slow:
    """Prints when it is let."""

    def __init__(self):
        self.seen = []
        self.begun = threading.Semaphore(0)
        self.let = threading.Semaphore(0)

    def assembly(self, text, options, name=""):
        self.seen.append(text)
        self.begun.release()
        assert self.let.acquire(timeout=10)
        return "f:\n"

    def cancel(self):
        self.let.release()

    close = cancel


def test_of_several_states_the_last_is_compiled():
    s, args = plain()
    slow = Slow()
    compiling = Compiling(lambda: slow)
    ids = []
    for factor in (2, 4, 8):
        s[args[1]].split(s[args[1]].op.axis[0], factor)
        job = job_of(s, args, resolve("cpu"), "f")
        ids.append(s.node.id)
        compiling.want(job)
        if factor == 2:
            assert slow.begun.acquire(timeout=10)
        s.undo()
    slow.let.release()
    slow.let.release()
    assert compiling.wait(60)
    assert [compiling.get(state) is not None for state in ids] == [True, False, True]
    assert len(slow.seen) == 2
    compiling.close()


def test_a_closed_widget_starts_no_process():
    s, args = plain()
    compiling = Compiling(lambda: pytest.fail("a process"))
    compiling.close()
    compiling.want(job_of(s, args, resolve("cpu"), "f"))
    assert compiling.wait(60)
    assert compiling.get(s.node.id) is None


def test_a_bug_in_the_thread_is_shown(opened):
    class Buggy(Broken):
        def assembly(self, text, options, name=""):
            raise ZeroDivisionError("oops")

    page = opened(*plain())
    page.widget._session.code.compiling._make_printer = Buggy
    assert page.code("assembly")["error"]["text"] == "compile: ZeroDivisionError: oops"


def test_passes_are_opened_by_name_and_stay_open(opened):
    s, args = six_step_gemm(64)
    page = opened(s, args)
    text = page.send("text", tab="passes")
    assert text["passes"]["steps"][text["passes"]["open"] - 1]["name"] == "simplify"
    text = page.send("pass", name="vectorize")
    vectorized = text["passes"]["open"]
    assert text["passes"]["steps"][vectorized - 1]["name"] == "vectorize"
    assert any(line["status"] == "removed" for line in text["lines"])
    page.send("undo")
    assert page.widget.text["passes"]["open"] == vectorized
    page.send("pass", name="no such pass")
    assert page.widget.status["tone"] == "error"
    assert "passes" not in page.send("text", tab="final")


def test_the_step_that_made_a_loop_is_told(opened):
    s, args = six_step_gemm(64)
    page = opened(s, args)
    page.send("choose", key="C.global/k.inner")
    assert page.widget.status["details"] == [["made by", "split C.global k 4"]]
    (row,) = [r for r in page.widget.tree["rows"] if r["key"] == "C.global/k.inner"]
    made = [r for r in page.widget.history["rows"] if r["id"] == row["made_by_state"]]
    assert [r["step"] for r in made] == ["split C.global k 4"]


@pytest.mark.campaign
def test_no_text_of_a_huge_program_is_too_large(opened):
    A = te.placeholder((64, 64), name="A")
    value = A[0, 0]
    for n in range(1, 40):
        value = value + A[n, n]
    B = te.compute((16, 64), lambda i, j: value + A[i, j], name="B")
    s = create_schedule(B.op)
    for axis in B.op.axis:
        s[B].unroll(axis)
    page = opened(s, [A, B])
    for tab in ("notation", "loops", "passes", "final", "python"):
        text = page.send("text", tab=tab)
        assert len(json.dumps(text)) < 1_000_000, tab
    assert text["lines"]
    text = page.send("pass", name="unroll")
    text = page.send("text", tab="passes")
    assert text["left_out"] > 500
    assert len(json.dumps(text)) < 1_000_000
