"""A widget in a browser without Jupyter: the page asks, the widget in this process answers.

The page has the widget's own module and styles and a model of twenty lines, so that a test of
JavaScript with Python behind it takes a fraction of a second. What a notebook adds (threads, keys,
themes, a kernel that restarts) is tested in JupyterLab.
"""

import base64
import json

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
    window.toPython(changes).then((answer) => this.update(answer));
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
  window.model = new Model(traits);
  window.stop = new AbortController();
  const el = document.querySelector("#host");
  widget.render({ model: window.model, el, signal: window.stop.signal });
}
"""
DARK = "background: #111; color: #eee"


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
        self.page.set_default_timeout(10_000)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda m: m.type == "error" and self.errors.append(m.text))
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.expose_function("toPython", self._from_page)
        shell = SHELL.replace("STYLES", str(widget._css)).replace("BODY_STYLE", body_style)
        self.page.set_content(shell)
        self.seen = traits_of(widget)
        self.replies = []
        if "reply" in self.seen:
            widget.observe(lambda change: self.replies.append(change["new"]), names="reply")
        module = base64.b64encode(str(widget._esm).encode()).decode()
        self.page.evaluate(START, [module, self.seen, MODEL])

    def _from_page(self, changes):
        for name, value in changes.items():
            setattr(self.widget, name, value)
        return self._changes()

    def _changes(self):
        now = traits_of(self.widget)
        changed = {n: v for n, v in now.items() if json.dumps(v) != json.dumps(self.seen.get(n))}
        self.seen = json.loads(json.dumps(now))
        # Each answer is a message of its own, also when a thread has pushed since.
        changed.pop("reply", None)
        replies, self.replies = self.replies, []
        return {**changed, "replies": replies}

    def push(self):
        """Show what the widget changed by itself, and wait until it is drawn."""
        self.page.evaluate("changes => window.model.update(changes)", self._changes())
        self._next_frame()

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
