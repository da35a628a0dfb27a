"""Measure the Explorer's latency in a real JupyterLab, by the page's own clock.

    python -m tests.widgets.latency [--clicks 50] [gemm conv2d chain]

A click is on a legal move of a loop. What it costs is counted from the click until the answer is
drawn and laid out. Each click leads to a state that was never shown before, so that nothing about
it is remembered; after every ten the cell is run again, so that the history stays as short as in
an hour of work.
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import BROWSERS
from tests.widgets import jupyter

CLICKS_PER_RUN = 10
PRIMITIVES = ("split", "unroll", "parallel", "vectorize", "reorder", "fuse", "compute_at")
FACTORS = (2, 4, 8, 16, 3, 5)
ROW = "{:<34} {:>9} {:>19} {:>9}  {}"
SHOW = """\
from dlcompiler.bench.programs import chain, packed_conv2d, six_step_gemm
from dlcompiler_widgets import Explorer
s, args = {program}
e = Explorer(s, args, name="{name}", level="all")
e
"""
MOVES = """
() => [...document.querySelectorAll(".dlc-moves button.dlc-move")]
  .filter((e) => e.getAttribute("aria-disabled") !== "true")
  .map((e) => e.dataset.key)
"""
NODES = "() => document.querySelectorAll('.dlc-explorer, .dlc-explorer *').length"


@dataclass(frozen=True)
class Case:
    """A program and what is asked of it."""

    name: str
    program: str
    limit_ms: float
    most_nodes: int | None = None


CASES = {
    "gemm": Case("six-step GEMM", "six_step_gemm()", 100),
    "conv2d": Case("8-stage conv2d", "packed_conv2d()", 250),
    "chain": Case("40-stage program", "chain(40)", 400, 5000),
}


def main(arguments):
    """Print the table; the exit status is 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", choices=[[], *CASES], default=[])
    parser.add_argument("--clicks", type=int, default=50)
    parser.add_argument("--json", type=Path, help="write the times to this file, too")
    options = parser.parse_args(arguments)
    browser_path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser_path is None:
        print("no browser")
        return 2
    names = options.cases or list(CASES)
    print(ROW.format("", "median", "middle half", "target", ""))
    results = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        jupyter.serving(Path(folder)) as server,
        jupyter.browsing(browser_path) as browser,
    ):
        for name in names:
            cell = SHOW.format(program=CASES[name].program, name=name)
            notebook = jupyter.open_notebook(server, browser, name, [cell])
            results[name] = measure(notebook, CASES[name], options.clicks)
            assert not notebook.errors, notebook.errors
            assert not notebook.foreign, notebook.foreign
            notebook.page.context.close()
    if options.json:
        options.json.write_text(json.dumps(results))
    return 0 if all(result["ok"] for result in results.values()) else 1


def measure(notebook, case, clicks):
    """Measure a case, and print its rows."""
    page = Page(notebook)
    done, choosing, applying, nodes = set(), [], [], 0
    while len(applying) < clicks:
        page.show()
        fresh = 0
        for key in page.loops() * CLICKS_PER_RUN:
            if fresh == CLICKS_PER_RUN or len(applying) == clicks:
                break
            choosing.append(page.choose(key))
            move = next((m for m in page.moves() if (key, m) not in done), None)
            if move is None:
                continue
            done.add((key, move))
            applying.append(page.apply(move))
            fresh += 1
            nodes = max(nodes, page.nodes())
            page.undo()
        if not fresh:
            break
    applied = statistics.median(applying)
    ok = applied <= case.limit_ms and nodes <= (case.most_nodes or nodes)
    verdict = "met" if applied <= case.limit_ms else "missed"
    print(_row(f"{case.name}: a move", applying, f"{case.limit_ms:.0f} ms", verdict))
    print(_row(f"{case.name}: choosing a loop", [t for t in choosing if t is not None], "–", ""))
    target = f"{case.most_nodes:,}" if case.most_nodes else "–"
    print(ROW.format(f"{case.name}: DOM nodes", f"{nodes:,}", "", target, ""), flush=True)
    return {"moves_ms": applying, "nodes": nodes, "ok": ok}


def _row(name, times, target, verdict):
    low, middle, high = statistics.quantiles(times, n=4)
    spread = f"{low:.0f} to {high:.0f} ms, n={len(times)}"
    return ROW.format(name, f"{middle:.0f} ms", spread, target, verdict)


class Page:
    """The Explorer that the first cell shows."""

    def __init__(self, notebook):
        self.notebook = notebook
        self.page = notebook.page

    def show(self):
        """Run the cell."""
        self.notebook.run(0)
        self.root = self.notebook.output(0).locator(".dlc-explorer")
        self.root.wait_for()

    def loops(self):
        return self.root.locator(".dlc-loop").evaluate_all("all => all.map(e => e.dataset.key)")

    def moves(self):
        """The moves of the chosen loop that are legal, each with its number, if it takes one."""
        keys = [key for key in self.page.evaluate(MOVES) if key.split()[0] in PRIMITIVES]
        return [(k, n) for k in keys for n in (FACTORS if k.startswith("split") else (None,))]

    def nodes(self):
        return self.page.evaluate(NODES)

    def choose(self, key):
        """Choose a loop; None if it is chosen already."""
        row = self.root.locator(f'[role="treeitem"][data-key="{key}"]')
        if row.get_attribute("aria-selected") == "true":
            return None
        return self.timed(row)

    def apply(self, move):
        key, factor = move
        if factor is not None:
            self.root.locator(f'[data-key="{key} factor"]').fill(str(factor))
        return self.timed(self.root.locator(f'.dlc-moves [data-key="{key}"]').first)

    def undo(self):
        self.timed(self.root.locator('.dlc-bar [data-key="undo"]'))

    def timed(self, target):
        """Click, wait for the drawn answer, and return what the page measured [ms]."""
        before = self.root.get_attribute("data-reply")
        target.click()
        self.page.wait_for_function(
            "([root, before]) => root.dataset.reply !== before && !root.hasAttribute('aria-busy')",
            arg=[self.root.element_handle(), before],
        )
        return float(self.root.get_attribute("data-latency-ms"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
