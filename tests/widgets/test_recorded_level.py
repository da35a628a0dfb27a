"""A recording has the level of its session; the peak of the ladder names its threads."""

import pytest

from tests.widgets.test_measured import explore, measured, note, send

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets.explorer.recording import record


def test_a_recording_has_the_level_of_its_session():
    explorer = explore(level="learn")
    data = record(explorer._session, list(explorer.layout_of_panes["panes"]), [])
    shown = data["states"][data["here"]]["shown"]
    assert data["visible"] == explorer.layout_of_panes["visible"]
    assert "history" not in data["visible"]
    assert set(shown["picture"]) == {"space", "off"}
    assert set(shown["text"]) == {"notation", "loops", "python"}
    (moves,) = {data["values"][place]["more"] for place in shown["moves"][""].values()}
    assert moves.startswith("More kinds of move")
    explorer.close()


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("threads", "text"), [(1, "peak, 1 thread: 100"), (2, "peak, 2 threads: 200")]
)
def test_the_label_of_the_peak_says_for_how_many_threads_it_is(threads, text):
    explorer = explore()
    note(explorer, None, None, measured(0.002, threads))
    send(explorer, "picture", tab="space")
    assert [line["short"] for line in explorer.ladder["lines"]] == [text]
    explorer.close()
