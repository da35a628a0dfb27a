"""The documentation is complete: each public name, each record, each name that a table promises."""

import functools
import importlib
import inspect
import re
from pathlib import Path

import pytest
from pygments.lexers import PythonLexer
from pygments.token import Error

from dlcompiler import te

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PUBLIC = (
    "dlcompiler",
    "dlcompiler.autotune",
    "dlcompiler.graph",
    "dlcompiler.graph.builders",
    "dlcompiler.ops",
    "dlcompiler.schedule",
    "dlcompiler.simulate.accelerators",
    "dlcompiler.target",
    "dlcompiler.te",
    "dlcompiler_widgets",
)
PAGES_OF_THEIR_OWN = {"dlcompiler": {"te"}, "dlcompiler.te": {"hybrid"}}
NAMES = re.compile(r"^\.\. names:: (\S+)\n\n((?:   \S+\n)+)", re.MULTILINE)
SHARED_PARAMETERS = ("dlcompiler.te.arithmetic", "dlcompiler.te.math")
"""Modules whose docstring describes the parameters of all their functions."""


@functools.cache
def described():
    """Return the names that the pages of the reference describe, with their modules."""
    return [
        (module, name)
        for page in sorted((DOCS / "api").glob("*.md"))
        for module, names in NAMES.findall(page.read_text(encoding="utf-8"))
        for name in names.split()
    ]


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_has_an_entry(module):
    pytest.importorskip(module)
    wanted = set(importlib.import_module(module).__all__) - PAGES_OF_THEIR_OWN.get(module, set())
    assert wanted == {name for where, name in described() if where == module}


def test_no_page_has_both_sides_of_a_conflict():
    pages = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    marks = ("<" * 7, ">" * 7)
    assert len(pages) > 30
    lines = [(page, line) for page in pages for line in page.read_text("utf-8").splitlines()]
    assert not [page for page, line in lines if line.startswith(marks)]


def test_the_lines_of_code_are_in_the_language_that_is_said():
    """What Pygments cannot read ends the building of the documentation."""
    pages = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    fenced = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    blocks = [(page, text) for page in pages for text in fenced.findall(page.read_text("utf-8"))]
    assert len(blocks) > 50
    lexer = PythonLexer()
    assert not [
        (page, text)
        for page, text in blocks
        if any(kind in Error for kind, _ in lexer.get_tokens(text))
    ]


def test_no_name_has_two_entries():
    assert len(described()) == len(set(described()))


def documented(obj):
    """Return the names that the section Parameters of a docstring explains."""
    text = inspect.getdoc(obj) or ""
    found = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-+$|\Z)", text, re.M | re.S)
    heads = [line for line in found[1].splitlines() if line[:1].strip()] if found else []
    return {
        name.strip().lstrip("*") for head in heads for name in head.partition(" :")[0].split(",")
    }


def functions():
    """Return the public functions and the methods of schedules, by name."""
    handles = ("Schedule", "Stage", "StageGroup", "Operator")
    for module, name in described():
        value = getattr(importlib.import_module(module), name)
        if inspect.isfunction(value) and value.__module__ not in SHARED_PARAMETERS:
            yield f"{module}.{name}", value
        elif name in handles:
            for key, method in vars(value).items():
                if not key.startswith("_") and inspect.isfunction(method):
                    yield f"{name}.{key}", method


def test_every_parameter_is_explained():
    pytest.importorskip("dlcompiler_widgets")
    missing = {
        name: absent
        for name, function in functions()
        if (absent := set(inspect.signature(function).parameters) - {"self"} - documented(function))
    }
    assert not missing


def test_every_module_with_shared_parameters_explains_them():
    for name in SHARED_PARAMETERS:
        assert documented(importlib.import_module(name))


def test_every_record_of_a_decision_is_in_the_table():
    table = (DOCS / "adr/index.md").read_text(encoding="utf-8")
    for path in sorted((DOCS / "adr").glob("0*.md")):
        head = path.read_text(encoding="utf-8").partition("\n")[0]
        number, _, title = head.removeprefix("# ").partition(". ")
        assert f"| {number} | [{title}]({path.name}) |" in table, path.name


def test_the_names_that_replace_those_of_tvm_are_there():
    import dlcompiler as dlc
    from dlcompiler import autotune, ops
    from dlcompiler.pipeline.executables import Kernel
    from dlcompiler.schedule import Schedule

    owners = {
        "dlc": dlc, "te": te, "ops": ops, "autotune": autotune, "s": Schedule, "kernel": Kernel
    }  # fmt: skip
    text = (DOCS / "COMING_FROM_TVM.md").read_text(encoding="utf-8")
    cells = [line.split(" | ")[1] for line in text.splitlines() if line.startswith("| ")]
    found = re.findall(r"`(dlc|te|ops|autotune|s|kernel)\.([\w.]+)`", " ".join(cells))
    assert len(found) > 40
    for owner, path in found:
        functools.reduce(getattr, path.split("."), owners[owner])


def test_the_page_for_users_of_tvm_names_every_primitive_of_tvm():
    from dlcompiler.schedule.primitives import REGISTRY

    text = (DOCS / "COMING_FROM_TVM.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\(PRIMITIVES\.md#(\w+)\)", text))
    assert linked <= set(REGISTRY)
    assert {"split", "compute_at", "cache_read", "tensorize", "rfactor", "set_scope"} <= linked
