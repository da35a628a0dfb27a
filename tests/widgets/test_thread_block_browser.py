"""A block of threads in a browser: bound from the palette, phase by phase, thread by thread."""

import pytest

from tests.thread_programs import convolution, staged_copy, tiled_matmul
from tests.widgets.live_page import LivePage

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer
from dlcompiler_widgets.explorer import background

pytestmark = pytest.mark.campaign(whole_file=True)

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


def test_the_counters_of_the_access_are_beside_its_picture(page):
    page.widget.schedule.redo()
    page.push()
    page.click("tab block")
    page.key("phase").select_option("1")
    page.settle()
    costs = page.locate(".dlc-picture .dlc-costs")
    assert "Simulated on v100: all blocks and phases of the kernel" in costs.inner_text()
    shown = {}
    for key in ("A r", "A.shared w"):
        page.key("buffer").select_option(key)
        page.settle()
        heads = costs.locator("th").all_inner_texts()
        shown[key] = dict(zip(heads, costs.locator("td").all_inner_texts(), strict=True))
    # 4 blocks, 4 tiles of A of 16×8 elements: half of the 8 warps load them, 8 elements a row
    assert shown["A r"] == {
        "access": "load A", "requests of warps": "64", "sectors of 32 B": "256",
        "sectors per request": "4", "bytes used": "100%", "active threads": "100%",
    }  # fmt: skip
    assert shown["A.shared w"] == {
        "access": "store A.shared", "requests of warps": "64", "passes": "64",
        "conflict degree": "1", "active threads": "100%",
    }  # fmt: skip
    counted = page.widget._session.blocks._counted[1][0]
    assert f"The whole kernel: {counted.issued:,} instructions of warps" in costs.inner_text()


DEEP = {"product": lambda: tiled_matmul(32, vthreads=2), "convolution": lambda: convolution(2)}
"""Programs with blocks, virtual threads, threads and nested rounds of phases."""


@pytest.fixture(params=DEEP)
def deep(request, contexts, monkeypatch):
    monkeypatch.setattr(background, "PATIENCE_S", 60.0)
    context = contexts.open(viewport={"width": 1416, "height": 900})
    shown = LivePage(context, Explorer(*DEEP[request.param](), target="v100"))
    shown.click("tab block")
    yield shown
    assert not shown.errors
    context.close()
    shown.widget.close()


HIDDEN = """(svg) => {
  const { left, right, top, bottom } = svg.closest(".dlc-picture-body").getBoundingClientRect();
  const isHidden = (box) => box.left < left - 1 || box.right > right + 1
    || box.top < top - 1 || box.bottom > bottom + 1;
  return [...svg.querySelectorAll(".dlc-mark")]
    .filter((each) => isHidden(each.getBoundingClientRect())).map((each) => each.textContent);
}"""
OVERFLOW = "(e) => [e.scrollWidth - e.clientWidth, e.scrollHeight - e.clientHeight]"


def test_a_deep_block_is_seen_at_once_and_can_be_zoomed_and_moved(deep):
    picture, frame = (
        deep.locate(f".dlc-picture {css}") for css in ("svg.dlc-scene", ".dlc-scroll")
    )
    for width in (1416, 736):
        deep.resize(width)
        assert picture.evaluate(HIDDEN) == [], width
        assert max(frame.evaluate(OVERFLOW)) <= 1, width
        assert picture.evaluate("(e) => e.getScreenCTM().a") >= 0.74, width
    for _ in range(4):
        deep.key("zoom in").click()
    assert frame.evaluate(OVERFLOW)[0] > 100
    box = frame.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + 60
    deep.page.mouse.move(x, y)
    deep.page.mouse.down()
    deep.page.mouse.move(x - 90, y, steps=3)
    deep.page.mouse.up()
    assert frame.evaluate("(e) => e.scrollLeft") > 60
    deep.key("zoom fit").click()
    assert picture.evaluate(HIDDEN) == []


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
