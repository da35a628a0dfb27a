"""Run on a device of this machine: its times have nothing of the processor beside them."""

import pytest

from dlcompiler import te
from dlcompiler.runtime import discovery
from dlcompiler.runtime.discovery import Devices
from dlcompiler.runtime.provenance import Provenance
from dlcompiler.runtime.timing import Timing
from dlcompiler.schedule import create_schedule
from tests.thread_programs import tiled_matmul
from tests.widgets.live_page import LivePage
from tests.widgets.test_measured import Watch, measured, note, send

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer
from dlcompiler_widgets.explorer.best_known import speed_of
from dlcompiler_widgets.explorer.measured import ladder_of
from dlcompiler_widgets.explorer.measuring import Measured
from dlcompiler_widgets.explorer.targets import times_of

FLOPS = 2.0 * 32**3


def device_measured(seconds, target="opencl", on="a device"):
    there = Provenance("measured", on)
    copies = tuple((f"copies to the {end}", Timing((1e-4,))) for end in ("device", "host"))
    timing = Timing((seconds,) * 3, FLOPS, provenance=there, copies=copies)
    return Measured(timing, threads=0, target=target)


def one_thread_each():
    """Return a sum with a thread for each element, in one step."""
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1.0, name="B")
    schedule = create_schedule(B.op)
    schedule[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    return schedule, [A, B]


@pytest.fixture
def product():
    schedule, args = tiled_matmul()
    widget = Explorer(schedule, args, name="matmul", level="all", stopwatch=Watch())
    yield widget
    widget.close()


@pytest.mark.campaign
def test_run_on_a_device_is_measured_there_without_the_processors_ceilings(contexts, opencl):
    schedule, args = one_thread_each()
    context = contexts.open(viewport={"width": 1200, "height": 900})
    page = LivePage(context, Explorer(schedule, args, level="all", name="plus"))
    page.key("target").select_option("opencl")
    page.settle()
    assert page.key("measure").get_attribute("aria-disabled") != "true"
    page.key("measure").click()
    page.wait(lambda: page.widget.bar["measuring"]["state"] == "idle")
    assert page.widget.status["text"].startswith("Measured: ")
    device = times_of(page.widget._session.target).on
    found = page.widget.schedule.node.notes["measured"]
    assert found.on == device
    assert found.beside is None
    said = page.locate(".dlc-status").inner_text()
    assert f"on {device}; copies to the device " in said
    page.click("tab ladder")
    (reason,) = ladder_of(page.widget._session)["notes"]
    assert reason == (
        f"{device}: its peak is not known, and NumPy runs on the processor, so neither is shown."
    )
    words = " ".join(page.locate(".dlc-picture svg text").all_text_contents())
    assert reason in words
    assert "1 thread" not in words
    page.click("tab roofline")
    words = page.locate(".dlc-picture").inner_text()
    assert "the ceilings of the device of opencl are not known" in words
    assert not page.errors
    context.close()
    page.widget.close()


def test_a_device_that_is_not_here_says_why_at_run(contexts, product, monkeypatch):
    absent = Devices(reason="no NVIDIA driver is installed here")
    monkeypatch.setattr(discovery, "devices", lambda language: absent)
    context = contexts.open(viewport={"width": 1200, "height": 900})
    page = LivePage(context, product)
    page.key("target").select_option("cuda")
    page.settle()
    page.key("measure").focus()
    page.page.keyboard.press("Enter")
    page.settle()
    why = "The device of cuda is not here: no NVIDIA driver is installed here."
    assert why in page.locate(".dlc-status").inner_text()
    assert not page.errors
    context.close()


def test_a_simulated_gpu_is_not_measured(product):
    assert send(product, "target", target="v100")["bar"]["not_measured"] == (
        "Only devices of this machine are measured; programs for v100 run on the simulator."
    )


def test_times_of_the_device_and_of_the_processor_do_not_meet(product):
    """A device faster than the processor's peak: nothing is measured again, no point is drawn."""
    ours = measured(0.001, numpy_s=0.002, flops=FLOPS, target="cpu")
    path = [None] * (len(product.schedule.node.path()) - 2)
    faster = device_measured(1e-9, on=times_of(product._session.target).on + " and a GPU")
    note(product, *path, ours, faster)
    send(product, "picture", tab="ladder")
    lines = [each["text"] for each in ladder_of(product._session)["lines"]]
    assert [text.partition(",")[0] for text in lines] == ["numpy.matmul", "FMA peak"]
    assert "busy" not in " ".join(ladder_of(product._session)["notes"])
    rung = ladder_of(product._session)["rows"][-1]
    assert "copies to the device 100 µs, copies to the host 100 µs" in rung["label"]
    assert "thread" not in rung["label"].partition("measured")[2].partition(";")[0]
    assert rung["change"] == ""
    send(product, "picture", tab="roofline")
    rows = product.picture["model"]["scene"]["table"]["rows"]
    states = {row[1] for row in rows if row[0] is not None}
    assert states == {f"{product.schedule.node.parent.title()}"}
    assert speed_of(product._session) is None
    send(product, "target", target="opencl")
    assert ladder_of(product._session)["lines"] == []
