"""Fixtures of every test: golden texts, hypothesis profiles, the browser; the order of tests.

``campaign`` marks tests with many cases of one kind, and long tests of what others try with less.
With ``DLCOMPILER_TEST_SHARE=20``, the default of ``make test``, one case of 20 is run, another one
for each commit; CI runs all of them (``tests/share.py``, also for counts inside a test), but few of
those marked ``campaign(longest=True)`` or elsewhere than in `COMPLETE`. A file marked
``campaign(whole_file=True)``, of which one long preparation serves all tests, is one case. All
cases are counted together, so that each commit has as many.
"""

from __future__ import annotations

import difflib
import functools
import gc
import os
import shutil
import signal
import sys
from pathlib import Path

import hypothesis
import pytest
from _pytest.doctest import DoctestModule

from dlcompiler.runtime import c_source
from dlcompiler.runtime.opencl import find_device
from tests.share import commit_number, share, share_of

TESTS = Path(__file__).parent
GOLDEN = TESTS / "golden"
FIRST = ("faults", "widgets", "cli")
"""Folders with long tests, or with servers that tests share: they do not come last."""
COMPLETE = (
    *("analysis", "arith", "autotune/features", "cli", "faults", "fuzz", "graph/frontends"),
    *("graph/memory", "graph/passes/test_passes_keep_values.py", "graph/text", "pipeline"),
    *("refusals", "simulate", "test_file_readers.py", "widgets"),
)
"""Tests whose campaigns CI runs in full: random programs, damaged files, commands and pages."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

# Where the environment forbids byte code beside the sources, it is kept in build/: without any,
# each of the thousand processes of a run compiles all that it imports, which takes half its time.
if sys.dont_write_bytecode:
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(TESTS.parent / "build" / "pycache")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix

# Tests compile without the cache, which would hide changes in the compiler.
os.environ["DLCOMPILER_OBJECT_CACHE"] = "off"

# The garbage collector does not look at what is imported and collected, which lives to the end:
# see `pytest_collection_finish`. Afterwards it runs after `COLLECTED_AFTER` new objects instead of
# 700: compiling makes many that live a little longer, and a tenth of its time was the collector's.
COLLECTED_AFTER = 50_000
gc.disable()

# C of ours has no warning of any kind.
c_source.FLAGS += ("-Wextra", "-pedantic", "-Wshadow")

hypothesis.settings.register_profile(
    "local", deadline=None, print_blob=True, max_examples=share_of(100, at_least=25)
)
hypothesis.settings.register_profile(
    "ci", deadline=None, print_blob=True, derandomize=True, database=None
)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(scope="session")
def opencl():
    """Skip the test where no OpenCL device is; it fails when CI is set."""
    if reason := find_device()[1]:
        if os.environ.get("CI"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the golden texts instead of comparing with them (refused when CI is set)",
    )

    parser.addoption(
        "--full",
        action="store_true",
        help="try operators on all combinations of layouts, dtypes and shapes, not only all pairs",
    )


def pytest_configure(config):
    if config.getoption("--update-golden") and os.environ.get("CI"):
        raise pytest.UsageError("--update-golden: golden texts are not written when CI is set")
    if config.getoption("--full"):
        os.environ["DLCOMPILER_TEST_FULL"] = "1"  # read while tests are collected, in each process


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Look for no examples in the docstrings of tests, which takes a quarter of collecting them."""
    return [found for found in (yield) if not isinstance(found, DoctestModule)]


def pytest_itemcollected(item):
    """Count all campaigns elsewhere than in `COMPLETE` as long ones."""
    mark = item.get_closest_marker("campaign")
    if mark and not _place(item.path).startswith(COMPLETE):
        kinds = {**mark.kwargs, "longest": True}
        item.add_marker(pytest.mark.campaign(**kinds), append=False)


def pytest_collection_modifyitems(config, items):
    items.sort(key=lambda item: _turn(item.path))
    if config.getoption("--update-golden"):
        others = [item for item in items if "golden" not in getattr(item, "fixturenames", ())]
        items[:] = [item for item in items if "golden" in getattr(item, "fixturenames", ())]
        config.hook.pytest_deselected(items=others)
    first, kept, left_out = commit_number(), [], []
    numbers: dict[str, int] = {}
    for item in items:
        mark = item.get_closest_marker("campaign")
        one_of = share(longest=mark.kwargs.get("longest", False)) if mark else 1
        if one_of == 1:
            kept.append(item)
            continue
        case = str(item.path) if mark.kwargs.get("whole_file") else item.nodeid
        number = numbers.setdefault(case, len(numbers))
        (kept if (number + first) % one_of == 0 else left_out).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish():
    gc.freeze()
    gc.set_threshold(COLLECTED_AFTER)
    gc.enable()


@functools.cache
def _turn(path):
    """Order the folders of tests: those of `FIRST` come first, so that a run ends evenly."""
    folder = _place(path).split("/")[0]
    return FIRST.index(folder) if folder in FIRST else len(FIRST)


def _place(path):
    """Return the path of a test within `TESTS`, or nothing for an example elsewhere."""
    return path.relative_to(TESTS).as_posix() if path.is_relative_to(TESTS) else ""


@pytest.fixture(scope="session")
def golden_owners():
    """Which test compares with which golden file, so that two tests never share one."""
    return {}


@pytest.fixture
def golden(request, golden_owners):
    """Compare a text with a stored one: ``golden(name, text)``.

    The text of ``tests/ir/test_printer.py`` is stored in ``tests/golden/ir/test_printer/NAME.txt``.
    """

    def compare(name: str, text: str) -> None:
        folder = GOLDEN / request.path.relative_to(TESTS).with_suffix("")
        path = folder / f"{name}.txt"
        shown = path.relative_to(TESTS.parent)
        owner = golden_owners.setdefault(path, request.node.nodeid)
        assert owner == request.node.nodeid, (
            f"{shown} already belongs to {owner}: take another name"
        )

        got = text.rstrip("\n") + "\n"
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(got, encoding="utf-8")
            return
        if not path.exists():
            pytest.fail(
                f"no golden text {shown}; `make golden` writes it, then read it before committing."
                f" The text now is:\n{got}",
                pytrace=False,
            )
        expected = path.read_text(encoding="utf-8")
        if got != expected:
            lines = difflib.unified_diff(
                expected.splitlines(), got.splitlines(), str(shown), "now", lineterm=""
            )
            pytest.fail(
                "\n".join(lines) + "\n\nif the new text is right, `make golden` writes it",
                pytrace=False,
            )

    return compare


@pytest.fixture
def ctrl_c():
    """Make SIGINT raise KeyboardInterrupt here: a shell makes jobs in the background ignore it.

    Nothing calls back from the garbage collector meanwhile: Python drops what is raised there, and
    Hypothesis measures the collector's time that way.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    callbacks = gc.callbacks[:]
    gc.callbacks.clear()
    yield
    gc.callbacks[:] = callbacks
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def browser_path():
    """Path of a Chromium; without one the test is skipped, but fails when CI is set."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found:
        return found
    message = f"no browser: none of {', '.join(BROWSERS)} is on the PATH"
    if os.environ.get("CI"):
        pytest.fail(message, pytrace=False)
    pytest.skip(message)
