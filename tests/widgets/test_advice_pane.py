"""Advice in the workbench: a click chooses its loop, a button takes the step."""

from dataclasses import replace

import pytest

from dlcompiler import te
from dlcompiler.autotune import RecordStore, tune
from dlcompiler.errors import MeasurementError
from dlcompiler.ops import operator
from dlcompiler.runtime.timing import Timing
from dlcompiler.target import CacheLevel
from dlcompiler.target.presets import X86_64_AVX2
from tests.simulate.gpu.test_requests import transposed
from tests.widgets.axe import violations
from tests.widgets.jupyter import open_panes
from tests.widgets.live_page import LivePage
from tests.widgets.test_live_page import matmul
from tests.widgets.test_measured import Watch

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer
from dlcompiler_widgets.explorer.measuring import Measured

pytestmark = pytest.mark.campaign(whole_file=True)


def open_page(contexts, schedule, args, target=X86_64_AVX2, **options):
    context = contexts.open(viewport={"width": 1200, "height": 900})
    page = LivePage(context, Explorer(schedule, args, target, name="main", **options))
    open_panes(page.locate(".dlc-grid"))
    return context, page


@pytest.fixture
def page(contexts):
    context, page = open_page(contexts, *matmul())
    yield page
    assert not page.errors
    context.close()
    page.widget.close()


def test_a_click_chooses_the_loop(page):
    page.click("advice stride-one axis not innermost C/k")
    assert page.widget.chosen == "C/k"
    chosen = page.locate(".dlc-advice-item.dlc-own")
    assert "stride-one" in chosen.first.inner_text()
    assert "TOPLAS" in page.locate(".dlc-advice-source").inner_text()


def test_a_button_takes_the_step(page):
    page.click("try stride-one axis not innermost C/k")
    assert page.widget.schedule.node.title() == "reorder C (k, j)"
    assert "stride-one" not in page.locate(".dlc-advice-list").inner_text()


def test_by_keyboard(page):
    page.key("try stride-one axis not innermost C/k").focus()
    page.page.keyboard.press("Enter")
    page.settle()
    assert page.widget.schedule.node.title() == "reorder C (k, j)"


def test_hostile_names_are_text(contexts):
    bad = '<img src=x onerror="window.hit=1">'
    caches = (CacheLevel(bad, 4096, line=64, shared_by=1),)
    schedule, args = matmul()
    context, page = open_page(contexts, schedule, args, replace(X86_64_AVX2, caches=caches))
    page.click("tab memory")
    assert bad in page.locate(".dlc-advice-list").inner_text()
    assert page.locate(".dlc-scene text", has_text=bad).count() >= 1
    assert page.page.evaluate("window.hit") is None
    assert not page.errors
    context.close()
    page.widget.close()


def test_axe_finds_nothing_serious(page):
    page.click("tab memory")
    assert violations(page.page) == []


# -- what is missing after a run -------------------------------------------------------------------


def measured_at(gflops, flops=2 * 64**3, target=""):
    timing = Timing((flops / gflops / 1e9,) * 3, flops)
    return Measured(timing, threads=1, target=target)


def unknown(threads, dtype):
    return MeasurementError("measure the machine", "it cannot be measured here")


@pytest.fixture
def slow(contexts):
    schedule, args = matmul()
    schedule.node.notes["measured"] = measured_at(20.0)
    context, page = open_page(contexts, schedule, args, stopwatch=Watch(machine=unknown))
    yield page
    assert not page.errors
    context.close()
    page.widget.close()


def rules_of(page):
    return [row["rule"] for row in page.widget.advice["rows"]]


def test_a_slow_product_hears_what_is_missing(slow):
    assert {"no register tile", "not packed", "a faster schedule is known"} <= set(rules_of(slow))
    text = slow.locate(".dlc-advice-list").inner_text()
    assert "20 GFLOP/s are 21% of the peak of 1 thread (96 GFLOP/s, estimated for 3 GHz)" in text


def test_the_peak_is_the_measured_one_when_it_is_known():
    schedule, args = matmul()
    schedule.node.notes["measured"] = measured_at(20.0)
    explorer = Explorer(schedule, args, X86_64_AVX2, name="main", stopwatch=Watch())
    explorer._session.machine.wait(60)
    texts = " ".join(row["text"] for row in explorer.view["advice"]["rows"])
    assert "20% of the peak of 1 thread (100 GFLOP/s, measured on this machine)" in texts
    explorer.close()


def test_the_best_known_schedule_opens_as_a_branch(slow):
    before = slow.widget.schedule.node
    slow.click("open best C")
    here = slow.widget.schedule.node
    assert here.path()[0] is before
    assert here.name == "best known"
    assert "Opened as a branch: the default config" in slow.locate(".dlc-status").inner_text()
    assert "a faster schedule is known" not in rules_of(slow)
    slow.widget.schedule.undo()
    assert here in slow.widget.schedule.history.history.nodes.values()


def test_a_record_is_preferred_to_the_default(tmp_path):
    schedule, args = matmul()
    item = operator("matmul")
    workload = item.workload(m=64, n=64, k=64)
    store = RecordStore(tmp_path / "records.db")
    run = tune(workload, trials=1, db=store, block=True, timeout_s=120)
    assert run.best is not None
    widget = Explorer(schedule, args, "cpu", db=store)
    widget.intent = {"id": "1", "op": "best", "args": {}}
    assert "default" not in widget.status["text"], widget.status
    widget.close()


@pytest.mark.parametrize("gflops", [None, 90.0])
def test_nothing_is_missing_without_a_time_or_near_the_peak(gflops):
    schedule, args = matmul()
    if gflops:
        schedule.node.notes["measured"] = measured_at(gflops)
    widget = Explorer(schedule, args, X86_64_AVX2)
    rules = {row["rule"] for row in widget.advice["rows"]}
    assert not {"no register tile", "not packed", "a faster schedule is known"} & rules
    widget.close()


def test_a_time_of_code_for_another_target_is_not_judged():
    schedule, args = matmul()
    schedule.node.notes["measured"] = measured_at(20.0, target="x86-64-sse2")
    widget = Explorer(schedule, args, X86_64_AVX2)
    assert "no register tile" not in {row["rule"] for row in widget.advice["rows"]}
    widget.close()


def test_what_is_no_product_has_no_best_schedule():
    A = te.placeholder((8, 8), name="A")
    B = te.compute((8, 8), lambda i, j: A[i, j] + 1.0, name="B")
    widget = Explorer(te.create_schedule(B.op), [A, B])
    widget.intent = {"id": "1", "op": "best", "args": {}}
    assert widget.status["text"] == "open the best known schedule: no output is a matrix product"
    assert len(widget.schedule.history.history.nodes) == 1
    widget.close()


def test_advice_for_a_gpu_is_about_kernels_and_its_step_can_be_taken(contexts):
    context, page = open_page(contexts, *transposed(64), "rtx-a6000")
    page.wait(lambda: "is_pending" not in page.widget.advice)
    page.settle()
    rules = page.locate(".dlc-advice-list").inner_text()
    assert "bank conflict" in rules
    assert "too few blocks" in rules
    page.click("try bank conflict B")
    assert page.widget.schedule.node.title() == "storage_align A.shared ax0 32 1"
    page.wait(lambda: "is_pending" not in page.widget.advice)
    page.settle()
    assert "bank conflict" not in page.locate(".dlc-advice-list").inner_text()
    assert not violations(page.page)
    context.close()
    page.widget.close()
