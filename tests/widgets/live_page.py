"""A widget in a browser without Jupyter: the page asks, the widget in this process answers.

The page has the widget's own module and styles and a model of twenty lines, so that a test of
JavaScript with Python behind it takes a fraction of a second. What a notebook adds (threads, keys,
themes, a kernel that restarts) is tested in JupyterLab.
"""

import base64
import json
import time

SHELL = """<!doctype html><meta charset="utf-8"><title>a widget</title>
<style>body { margin: 8px; font-family: sans-serif } BODY_STYLE</style><style>STYLES</style>
<div id="host"></div>"""

MODEL = """
class Model {
  constructor(traits) { this.traits = traits; this.listeners = new Map(); this.dirty = {}; }
  get(name) { return this.traits[name]; }
  set(name, value) { this.traits[name] = value; this.dirty[name] = value; }
  save_changes() {
    const changes = this.dirty;
    this.dirty = {};
    window.toPython(changes).then((answer) => this.update(JSON.parse(answer)));
  }
  update({ reply, replies = [reply], ...changes }) {
    Object.assign(this.traits, changes);
    for (const name of Object.keys(changes)) this.fire(name);
    for (const reply of replies) {
      this.traits.reply = reply;
      this.fire("reply");
    }
  }
  fire(name) {
    for (const f of this.listeners.get(`change:${name}`) ?? []) f();
  }
  on(event, f) { this.listeners.set(event, [...(this.listeners.get(event) ?? []), f]); }
  off(event, f) {
    this.listeners.set(event, (this.listeners.get(event) ?? []).filter((each) => each !== f));
  }
}
"""
START = """
async ([module, traits, model]) => {
  const Model = new Function(`${model}; return Model;`)();
  const { default: widget } = await import(`data:text/javascript;base64,${module}`);
  window.model = new Model(JSON.parse(traits));
  window.stop = new AbortController();
  const el = document.querySelector("#host");
  widget.render({ model: window.model, el, signal: window.stop.signal });
}
"""
DARK = "background: #111; color: #eee"
WAIT_S = 120
"""How long an answer may take [s]; hundredths of a second are usual."""


def traits_of(widget):
    """What the page may see of a widget: its synchronised traits that are JSON."""
    hidden = {"layout", "tabbable", "tooltip"}
    names = [n for n in widget.keys if not n.startswith("_") and n not in hidden]
    return {name: getattr(widget, name) for name in names}


class LivePage:
    """A widget on a page: ``page`` is Playwright's, ``errors`` what the console said."""

    def __init__(self, context, widget, body_style=""):
        self.widget = widget
        self.errors = []
        self.requests = []
        self.page = context.new_page()
        self.page.set_default_timeout(WAIT_S * 1000)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda m: m.type == "error" and self.errors.append(m.text))
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.expose_function("toPython", self._from_page)
        shell = SHELL.replace("STYLES", str(widget._css)).replace("BODY_STYLE", body_style)
        self.page.set_content(shell)
        traits = traits_of(widget)
        self.changed = set()
        self.replies = []
        widget.observe(self._note, names=list(traits))
        module = base64.b64encode(str(widget._esm).encode()).decode()
        self.page.evaluate(START, [module, json.dumps(traits), MODEL])

    def _note(self, change):
        if change["name"] == "reply":  # each is a message of its own
            self.replies.append(change["new"])
        else:
            self.changed.add(change["name"])

    def _from_page(self, changes):
        for name, value in changes.items():
            setattr(self.widget, name, value)
        return self._changes()

    def _changes(self):
        """Return what changed, as text: Playwright takes long for values with many parts."""
        replies, self.replies = self.replies, []
        names, self.changed = self.changed, set()
        changes = {name: getattr(self.widget, name) for name in names}
        return json.dumps({**changes, "replies": replies})

    def push(self):
        """Show what the widget changed by itself, and wait until it is drawn."""
        self.page.evaluate("text => window.model.update(JSON.parse(text))", self._changes())
        self._next_frame()

    def wait(self, condition):
        """Wait until a condition holds; what threads change is shown meanwhile."""
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < deadline, "it never comes"
            self.page.wait_for_timeout(20)
            self.push()

    def settle(self):
        """Wait until the answer to the last request is drawn."""
        self.page.locator(".dlc-explorer:not([aria-busy])").wait_for()
        self._next_frame()

    def _next_frame(self):
        self.page.evaluate("() => new Promise((f) => requestAnimationFrame(() => f()))")

    def locate(self, css, **options):
        return self.page.locator(css, **options)

    def loop(self, key):
        return self.page.locator(f'[role="treeitem"][data-key="{key}"]')

    def key(self, key):
        """What has a key: a move, a button, a tab."""
        return self.page.locator(f'[data-key="{key}"]').first

    def click(self, key):
        self.key(key).click()
        self.settle()
