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


# -- operators beside TVM's ---------------------------------------------------------------------

OUTCOME = re.compile(r"^\| (`topi\.[^|]+) \| (same|mended|differs) \| ?(.*)\|$", re.MULTILINE)
MODULES = ("", ".nn", ".nn.utils", ".utils", ".testing", ".generic", ".tag")


def _operators():
    """Return every function of `topi` by its full name."""
    for module in MODULES:
        found = importlib.import_module(f"dlcompiler.compat.tvm.topi{module}")
        for name in found.__all__:
            if callable(getattr(found, name)):
                yield f"topi{module}.{name}"


def _compared():
    """Return the names of the table, with what it says."""
    for names, outcome, remark in OUTCOME.findall(PAGE.read_text(encoding="utf-8")):
        first, *others = re.findall(r"`([\w.]+)`", names)
        for name in (first, *(f"{first.rpartition('.')[0]}.{other}" for other in others)):
            yield name, outcome, remark.strip()


def test_each_operator_is_held_against_tvms():
    compared = [name for name, _, _ in _compared()]
    assert len(compared) == len(set(compared))
    assert set(compared) == set(_operators())


def test_a_difference_says_how():
    for name, outcome, remark in _compared():
        assert bool(remark) == (outcome != "same"), name
