"""A notebook without a kernel in renderers that cannot be run here: VS Code, nbviewer, GitHub."""

import re
import xml.etree.ElementTree as ET

import pytest

from tests.static_pictures import pictures_in
from tests.thread_programs import staged_copy
from tests.widgets.renderers import RENDERERS
from tests.widgets.shots import climbed, tuned

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer, LoopTree, MemoryScopes
from dlcompiler_widgets.static_output import StaticOutput

WIDGETS = {
    "measured explorer": (climbed, ["parallel C i.outer", "for k.outer in range(128):", "GFLOP/s"]),
    "explorer of a gpu": (
        lambda: Explorer(*staged_copy(), target="v100"),
        ["bind B i.inner threadIdx.x", "allocate A.shared: float32[16] in shared"],
    ),
    "loop tree": (lambda: LoopTree(staged_copy()[0]), ["i.outer", "blockIdx.x"]),
    "memory": (lambda: MemoryScopes(staged_copy()[0], target="v100"), ["A.shared", "limit [byte]"]),
    "tuning run": (tuned, ["measured", "predicted"]),
}
"""By name: a widget, and words that must remain."""


@pytest.fixture(scope="module", params=WIDGETS)
def saved(request):
    """The outputs that a notebook stores of a widget, and words that must remain."""
    make, words = WIDGETS[request.param]
    widget: StaticOutput = make()
    widget._static_shown = widget.static_html()
    yield [widget._live()[0] | {"text/html": "<div></div>"}, widget._static_bundle()], words
    widget.close()


def words_of(html):
    """The text of HTML that is well formed."""
    return "".join(ET.fromstring(f"<div>{html}</div>").itertext())


@pytest.mark.parametrize("name", RENDERERS)
def test_a_picture_and_words_remain(saved, name):
    outputs, wanted = saved
    view, (kind, still) = (RENDERERS[name].shown(each) for each in outputs)
    assert view[0] != "text/html" or not words_of(view[1]).strip(), "the picture is said once"
    assert kind == "text/html"
    shown = words_of(still)
    assert [each for each in wanted if each not in shown] == []
    images = re.findall(r"<img\b[^>]*>", still)
    assert all(re.search(r'\balt="[^"]{20,}"', image) for image in images), "a picture has words"
    if RENDERERS[name].shows_data:
        assert images
        assert len(pictures_in(still)) == len(images)
    # A table has the numbers of each picture where the image is removed.
    assert still.count("<tr>") > 3 * len(images)


def test_programs_keep_their_lines_and_indentation(saved):
    outputs, _ = saved
    _, still = RENDERERS["GitHub, by its rules for text"].shown(outputs[1])
    for program in ET.fromstring(f"<div>{still}</div>").iter("pre"):
        lines = "".join(program.itertext()).splitlines()
        assert any("    " in line for line in lines)
    assert "style" not in still
    assert "class" not in still
