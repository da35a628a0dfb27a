"""The table of panes: each has its trait and its class, and a new one needs nothing else."""

import re
from pathlib import Path

import dlcompiler_widgets
import pytest
from dlcompiler_widgets import (
    Advice,
    CodePanes,
    Explorer,
    HistoryTree,
    LoopTree,
    PassDiff,
    ScheduleGraph,
    ThreadBlock,
)
from dlcompiler_widgets.explorer.levels import LEVELS, PRESETS
from dlcompiler_widgets.explorer.recording import record
from dlcompiler_widgets.explorer.snapshot import PANES, Pane
from dlcompiler_widgets.explorer.widget import Workbench

from tests.widgets.test_live_page import matmul

JS = Path(dlcompiler_widgets.__file__).parent / "js"
ENTRY = re.compile(r"(\w+): (\w+)")


def classes():
    """The class of each pane, by name, from ``js/workbench.js``."""
    table = re.search(r"const PANES = \{(.*?)\};", (JS / "workbench.js").read_text(), re.DOTALL)
    return dict(ENTRY.findall(table[1]))


@pytest.mark.parametrize("name", PANES)
def test_a_pane_has_a_trait_and_a_class(name):
    is_trait = name in Workbench.class_trait_names(sync=True)
    assert is_trait != PANES[name].is_private, "explorer/widget.py has no such trait"
    assert name in classes(), "PANES of js/workbench.js has no such class"


def test_there_are_no_other_classes():
    assert set(classes()) == set(PANES)
    assert Explorer.shown_panes == tuple(PANES)


def test_levels_and_presets_name_panes_of_the_grid():
    grid = {name for name, pane in PANES.items() if pane.place == "grid"}
    for each in (*LEVELS.values(), *PRESETS.values()):
        assert (each.only or set()) <= grid


@pytest.fixture
def notes(monkeypatch):
    """A pane that is in the table only for one test."""
    pane = Pane(lambda session: {"loop": session.chosen})
    monkeypatch.setitem(PANES, "notes", pane)
    monkeypatch.setattr(Explorer, "shown_panes", (*Explorer.shown_panes, "notes"))
    Explorer.notes = None
    yield pane
    del Explorer.notes


def test_a_new_pane_is_shown_and_recorded(notes):
    explorer = Explorer(*matmul())
    assert explorer.layout_of_panes["panes"]["notes"] == "grid"
    assert explorer.notes == {"loop": explorer.chosen}
    data = record(explorer._session, explorer.layout_of_panes["visible"], [])
    shown = data["states"][data["here"]]["shown"]["notes"][""]
    assert {key: data["values"][place] for key, place in shown.items()} == {
        key: {"loop": key} for key in ("C", "C/i", "C/j", "C/k")
    }
    explorer.close()


SINGLE = (Advice, CodePanes, HistoryTree, LoopTree, PassDiff, ScheduleGraph, ThreadBlock)


@pytest.mark.parametrize("widget", SINGLE)
def test_a_widget_with_one_pane_keeps_it_at_every_level(widget):
    pane = widget.shown_panes[0]
    single = widget(*matmul(), level="learn")
    for op, name in (("", ""), ("level", "learn"), ("preset", "history"), ("preset", "picture")):
        if op:
            single.intent = {"id": name, "op": op, "args": {op: name}}
        assert pane in single.layout_of_panes["visible"]
        assert getattr(single, pane)
        assert "Error" not in single.status["text"]
    single.close()
