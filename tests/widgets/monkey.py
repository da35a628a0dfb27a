"""Click at random in the Explorer until the time is over; stop at the first thing that is wrong.

    python -m tests.widgets.monkey --seed 0 --seconds 600 [--lab]

A round is a few hundred actions on a fresh Explorer: clicks on what is enabled and what is not,
keys, nonsense in fields, tabs, choices, undo and redo. It depends on its seed only, and the next
round has the next seed, so ``--seed N --rounds 1`` repeats the round that failed. Without ``--lab``
the page is one without Jupyter; with it, a notebook in JupyterLab.

Wrong is: an error in the console, a request that is not answered, a bug that is said in the page, a
page that shows another loop nest, choice or history than the model has.
"""

import argparse
import contextlib
import json
import random
import shutil
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

from dlcompiler import te
from dlcompiler.bench.programs import chain
from dlcompiler.errors import MeasurementError
from dlcompiler.runtime.timing import Timing
from dlcompiler.schedule import create_schedule
from dlcompiler.views import loop_tree
from tests.conftest import BROWSERS
from tests.widgets import jupyter
from tests.widgets.live_page import Contexts, LivePage

ACTIONS_PER_ROUND = 150
ACTIONS_PER_CHECK = 10
LAST_ACTIONS = 15
ANSWER_LIMIT_MS = 30_000
KEYS = (
    "Tab", "Shift+Tab", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End", "Enter",
    "Escape", "Space", "Control+z", "Control+Shift+Z", "?", "a", "b", "n", "k", "x",
)  # fmt: skip
NONSENSE = (
    "", "0", "-1", "7", "2", "8", "1e9", "99999999999999999999", "x; 1", "<img src=x onerror=a()>",
    "ä€😀", "C[i, j] = A[i, k] * B[k, j]", "A: float32[4, 4]", "C[", "#s=AAAA", "{}", "null",
)  # fmt: skip
ACT = """
([root, name, r, text]) => {
  const seen = (css) => [...root.querySelectorAll(css)].filter((e) => e.checkVisibility());
  const pick = (all) => all[Math.floor(r * all.length)];
  const called = (e) => `${e.tagName.toLowerCase()} ${e.dataset.key ?? e.ariaLabel
    ?? e.textContent.slice(0, 40)}${e.ariaDisabled === "true" ? " (disabled)" : ""}`;
  const mouse = (e, type) =>
    e.dispatchEvent(new MouseEvent(type, { bubbles: type !== "mouseenter" }));
  const targets = {
    click: "button, .dlc-row[data-key], .dlc-state, .dlc-link, summary",
    tab: '[role="tab"]', move: ".dlc-move, .dlc-chip", undo: '[data-key="undo"], [data-key="redo"]',
    look: "button, .dlc-row, .dlc-state, .dlc-mark, .dlc-line", type: "input, textarea",
    choose: "select",
  };
  const node = pick(seen(targets[name]));
  if (!node) return null;
  const what = called(node);
  if (name === "look") ["mouseenter", "mouseover"].forEach((type) => mouse(node, type));
  else if (name === "type") {
    if (node.readOnly) return null;
    node.focus();
    node.value = node.type === "range" ? Math.floor(Math.random() * 9) : text;
    node.dispatchEvent(new Event("input", { bubbles: true }));
    node.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
    return `type ${JSON.stringify(text)} into ${what}`;
  } else if (name === "choose") {
    node.focus();
    node.selectedIndex = Math.floor(r * 7919) % node.options.length;
    const value = node.value;
    node.dispatchEvent(new Event("change", { bubbles: true }));
    return `choose ${value} of ${what}`;
  } else {
    node.focus?.();
    mouse(node, "click");
  }
  return `${name} ${what}`;
}
"""
SHOWN = """
(root) => ({
  rows: [...root.querySelectorAll(".dlc-tree [role=treeitem]")].map((e) => e.dataset.key),
  kinds: [...root.querySelectorAll(".dlc-tree .dlc-loop")].map((e) =>
    e.querySelector(".dlc-pill")?.textContent.replace(/^\\W+ /, "") ?? "serial"),
  chosen: root.querySelector('.dlc-tree [aria-selected="true"]')?.dataset.key ?? null,
  states: root.querySelector(".dlc-history")?.checkVisibility()
    ? root.querySelectorAll(".dlc-state").length : null,
})
"""
WEIGHTS = {
    "click": 6, "tab": 2, "move": 4, "undo": 2, "look": 3, "type": 3, "choose": 1, "key": 6,
}  # fmt: skip


class Fast:
    """A stopwatch that measures nothing."""

    def verify(self, *args):
        raise MeasurementError("verify", "nothing is verified here")

    def measure(self, *args):
        return Timing((0.002, 0.002, 0.003), flops=2.0 * 64**3)

    def cancel(self):
        pass


def product(n=16):
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    D = te.compute((n, n), lambda i, j: te.maximum(C[i, j], 0.0), name="D")
    return create_schedule(D.op), [A, B, D]


def small_chain():
    return chain(3, 16)


PROGRAMS = (product, small_chain)


def expected(widget):
    """Return what the page has to show of a widget."""
    tree = loop_tree(widget.schedule)
    rows = [row for row in tree["rows"] if row["type"] != "statement"]
    return {
        "rows": [row["key"] for row in rows],
        "kinds": [row["kind"] for row in rows if row["type"] == "loop"],
        "chosen": widget.chosen,
        "states": len(widget.schedule.history.history.nodes),
    }


class Wrong(Exception):
    """Something that must not happen."""


class Live:
    """An Explorer on a page without Jupyter."""

    def __init__(self, contexts, seed):
        from dlcompiler_widgets import Explorer

        schedule, args = PROGRAMS[seed % len(PROGRAMS)]()
        self.widget = Explorer(schedule, args, name="monkey", stopwatch=Fast())
        self.live = LivePage(contexts.open(viewport={"width": 1200, "height": 900}), self.widget)
        self.page, self.errors = self.live.page, self.live.errors

    def sync(self):
        """Show what threads have found out."""
        if self.live.replies:
            self.live.push()

    def model(self):
        with self.widget.schedule.lock:
            return expected(self.widget)

    def close(self):
        self.live.context.close()
        self.widget.close()


LAB_CELLS = [
    """\
from tests.widgets.monkey import PROGRAMS, Fast, expected
from dlcompiler_widgets import Explorer
schedule, args = PROGRAMS[{number}]()
e = Explorer(schedule, args, name="monkey", stopwatch=Fast())
e
""",
    "import json; print(json.dumps(expected(e)))",
]


class Lab:
    """An Explorer in a notebook in JupyterLab; its model is in the kernel."""

    def __init__(self, server, browser, seed):
        cells = [cell.replace("{number}", str(seed % len(PROGRAMS))) for cell in LAB_CELLS]
        self.notebook = jupyter.open_notebook(server, browser, f"monkey-{seed}", cells)
        self.notebook.run(0)
        self.page, self.errors = self.notebook.page, self.notebook.errors
        self.page.locator(".dlc-explorer").wait_for()

    def sync(self):
        if self.notebook.foreign:
            raise Wrong(f"a request left this machine: {self.notebook.foreign}")

    def model(self):
        # The workbench may fill the screen; the cell is behind it then.
        self.page.evaluate("document.fullscreenElement && document.exitFullscreen()")
        self.notebook.run(1)
        return json.loads(self.notebook.output(1).inner_text())

    def close(self):
        self.page.context.close()


def play(place, seed, actions, deadline=float("inf")):
    """Do some random actions; returns how many, or raises `Wrong` with the last of them."""
    choice = random.Random(seed)
    last = deque(maxlen=LAST_ACTIONS)
    done = 0
    try:
        for done in range(1, actions + 1):
            act(place, choice, last)
            settle(place)
            if done % ACTIONS_PER_CHECK == 0 or done == actions:
                compare(place)
            if time.monotonic() > deadline:
                break
        compare(place)
    except Exception as error:
        text = "\n  ".join(last)
        raise Wrong(f"seed {seed}, action {done}: {error}\nthe last actions:\n  {text}") from error
    return done


def act(place, choice, last):
    """Do one thing."""
    (name,) = choice.choices(list(WEIGHTS), list(WEIGHTS.values()))
    r, text, key = choice.random(), choice.choice(NONSENSE), choice.choice(KEYS)
    root = place.page.locator(".dlc-explorer").first.element_handle()
    inside = "root => root.contains(document.activeElement)"
    if name != "key":
        last.append(str(place.page.evaluate(ACT, [root, name, r, text])))
    elif place.page.evaluate(inside, root):
        last.append(f"press {key}")
        place.page.keyboard.press(key)


def settle(place):
    place.sync()
    place.page.wait_for_function(
        "() => !document.querySelector('.dlc-explorer[aria-busy]')", timeout=ANSWER_LIMIT_MS
    )
    if place.errors:
        raise Wrong(f"the console says: {place.errors}")
    said = place.page.locator(".dlc-status").first.inner_text()
    if ".py:" in said:
        raise Wrong(f"the page says: {said}")


def compare(place):
    """The page shows what the model has."""
    model = place.model()
    settle(place)
    root = place.page.locator(".dlc-explorer").first.element_handle()
    shown = place.page.evaluate(SHOWN, root)
    if shown["states"] is None:  # at this level the history is hidden
        model["states"] = None
    if shown != model:
        raise Wrong(f"the page shows {shown},\nthe model has {model}")


def main(arguments):
    """Play rounds; the exit status is 1 if something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--rounds", type=int, default=sys.maxsize)
    parser.add_argument("--lab", action="store_true")
    options = parser.parse_args(arguments)
    browser_path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser_path is None:
        print("no browser")
        return 2
    deadline = time.monotonic() + options.seconds
    seed, total = options.seed, 0
    with contextlib.ExitStack() as stack:
        browser = stack.enter_context(jupyter.browsing(browser_path))
        contexts, server = Contexts(browser), None
        if options.lab:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            server = stack.enter_context(jupyter.serving(Path(folder)))
        while time.monotonic() < deadline and seed - options.seed < options.rounds:
            place = Lab(server, browser, seed) if options.lab else Live(contexts, seed)
            try:
                total += play(place, seed, ACTIONS_PER_ROUND, deadline)
            except Wrong as error:
                print(error)
                print(f"again: python -m tests.widgets.monkey --seed {seed} --rounds 1"
                      + (" --lab" if options.lab else ""))  # fmt: skip
                return 1
            finally:
                place.close()
            print(f"seed {seed}: well; {total} actions", flush=True)
            seed += 1
    print(f"{total} actions, nothing wrong; the next seed is {seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
