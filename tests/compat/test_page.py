"""``docs/COMPAT.md`` is true: each name is what the page says."""

import importlib
import re
from pathlib import Path

import pytest

from dlcompiler import te
from dlcompiler.compat import arrays, modules
from dlcompiler.compat.missing import MissingModule, MissingName
from dlcompiler.schedule.schedule import Schedule
from dlcompiler.schedule.stage import Stage

PAGE = Path(__file__).parents[2] / "docs/COMPAT.md"
ROW = re.compile(r"^\| `([\w.]+)` \| (here|later|no) \| ?(.*)\|$", re.MULTILINE)
CLASSES = {
    "Stage": Stage,
    "Schedule": Schedule,
    "Tensor": te.Tensor,
    "Module": modules.Module,
    "NDArray": arrays.NDArray,
}
ROWS = ROW.findall(PAGE.read_text(encoding="utf-8"))


def _found(name):
    """Return what a name of the page stands for."""
    head, *rest = name.split(".")
    value = CLASSES.get(head)
    if value is None:
        value = importlib.import_module(f"dlcompiler.compat.{head}")
    for part in rest:
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("name", [name for name, state, _ in ROWS if state == "here"])
def test_a_name_that_is_here(name):
    assert _found(name) is not None


@pytest.mark.parametrize("name", [name for name, state, _ in ROWS if state != "here"])
def test_a_name_that_is_not_here(name):
    if name.split(".")[0] in CLASSES:
        assert not hasattr(CLASSES[name.split(".")[0]], name.split(".")[1])
        return
    with pytest.raises((MissingName, MissingModule), match="is not part of dlcompiler yet"):
        _found(name)


def test_names_beside_a_name():
    for name, state, remark in ROWS:
        if state == "here":
            for other in re.findall(r"`(\w+)`", remark.partition("and ")[2]):
                assert _found(f"{name.rpartition('.')[0]}.{other}") is not None


def test_no_name_stands_twice():
    names = [name for name, _, _ in ROWS]
    assert len(names) == len(set(names)) > 150
