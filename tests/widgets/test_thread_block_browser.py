"""A block of threads in a browser: bound from the palette, phase by phase, thread by thread."""

import pytest

from tests.thread_programs import staged_copy, tiled_matmul
from tests.widgets.live_page import LivePage

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer
from dlcompiler_widgets.explorer import background

LOOP = "B.shared/ax0.ax1.fused.outer.inner"


@pytest.fixture
def page(contexts, monkeypatch):
    """A product whose last loop is to be bound yet."""
    monkeypatch.setattr(background, "PATIENCE_S", 60.0)
    context = contexts.open(viewport={"width": 1400, "height": 900})
    schedule, args = tiled_matmul()
    schedule.undo()
    widget = Explorer(schedule, args, target="v100", name="matmul")
    shown = LivePage(context, widget)
    yield shown
    assert not shown.errors
    context.close()
    widget.close()


def words(page):
    return page.locate('.dlc-picture [aria-live="polite"]').inner_text()


def summary(page):
    return page.locate('.dlc-picture .dlc-summary:not([aria-live="polite"])').inner_text()


def marked(page):
    """Keys of the cells that are marked."""
    return page.page.evaluate(
        "() => [...document.querySelectorAll('.dlc-cell.dlc-own')].map(({ keys }) => keys[0])"
    )


def test_from_a_bind_to_the_phases_of_its_block(page):
    page.loop(LOOP).click()
    page.settle()
    page.click(f"bind B.shared {LOOP.replace('/', '.')} threadIdx.y")
    assert page.widget.schedule.node.title() == (
        "bind B.shared ax0.ax1.fused.outer.inner threadIdx.y"
    )
    pill = page.loop(LOOP).locator(".dlc-pill")
    assert pill.inner_text() == "▸ threadIdx.y"
    assert page.locate(".dlc-barrier").count() == 2
    page.click("tab block")
    assert "phase 3 of 9, k.outer = 0: each reads 8 elements of A.shared" in summary(page)
    page.key("phase").select_option("1")
    page.settle()
    assert "phase 2 of 9, k.outer = 0" in summary(page)
    assert page.key("phase").input_value() == "1"
    page.click("phase behind")
    page.key("buffer").select_option("B.shared r")
    page.settle()
    assert "reads 8 elements of B.shared" in summary(page)
    page.locate('.dlc-picture text.dlc-link:text-is("phase 9")').click()
    page.settle()
    assert "phase 9 of 9, k.outer = 3" in summary(page)
    page.key("blockIdx.x").fill("1")
    page.key("blockIdx.x").press("Enter")
    page.settle()
    assert "blockIdx.x = 1" in summary(page)


def test_threads_and_elements_show_what_belongs_to_them(page):
    page.click("tab block")
    sent = page.widget.intent
    slider = page.key("thread")
    slider.focus()
    for _ in range(17):
        page.page.keyboard.press("ArrowRight")
    assert words(page).startswith("thread (1, 1) reads A.shared[1, 0], A.shared[1, 1]")
    assert slider.get_attribute("aria-valuetext") == words(page)
    assert marked(page) == ["t17", *(f"e{n}" for n in range(8, 16))]
    page.locate(".dlc-picture .dlc-cell").nth(256).click()
    assert words(page).startswith("A.shared[0, 0]: 16 threads, (0, 0), (1, 0)")
    assert marked(page) == [*(f"t{n}" for n in range(16)), "e0"]
    assert page.widget.intent == sent, "it asks nothing of Python"


def test_a_recording_that_takes_long_arrives_by_itself(page, monkeypatch):
    monkeypatch.setattr(background, "PATIENCE_S", 0.0)
    page.click("tab block")
    page.wait(lambda: "being simulated" not in page.locate(".dlc-picture").inner_text())
    assert "Simulated: 16 × 16 threads" in summary(page)


def test_a_page_without_a_kernel_goes_through_the_phases(contexts, tmp_path):
    schedule, args = staged_copy()  # of few states: each is recorded
    widget = Explorer(schedule, args, target="v100")
    widget.save_html(tmp_path / "page.html")
    context = contexts.open(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.locator('[data-key="tab block"]').click()
    expect = pytest.importorskip("playwright.sync_api").expect
    shown = page.locator('.dlc-picture .dlc-summary:not([aria-live="polite"])')
    expect(shown).to_contain_text("phase 2 of 2: each reads")
    page.locator('[data-key="phase"]').select_option("0")
    expect(shown).to_contain_text("phase 1 of 2: each writes")
    page.locator('[data-key="blockIdx.x"]').fill("1")
    page.locator('[data-key="blockIdx.x"]').press("Enter")
    refusal = "this phase, buffer or block: needs a kernel"
    expect(page.locator(".dlc-status")).to_contain_text(refusal)
    expect(shown).to_contain_text("phase 1 of 2: each writes")
    context.close()
    widget.close()
