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
  update({ reply, replies = [reply], messages = [], ...changes }) {
    for (const message of messages) {
      for (const f of this.listeners.get("msg:custom") ?? []) f(message);
    }
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
  send(content) {
    window.toPython({}, content).then((answer) => this.update(JSON.parse(answer)));
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
MEDIA = {"color_scheme": "light", "reduced_motion": "no-preference", "forced_colors": "none"}
"""What a page may be told of its user, and what it is told first."""
DARK = "background: #111; color: #eee"
WAIT_S = 120
"""How long an answer may take [s]; hundredths of a second are usual."""


def traits_of(widget):
    """What the page may see of a widget: its synchronised traits that are JSON."""
    hidden = {"layout", "tabbable", "tooltip"}
    names = [n for n in widget.keys if not n.startswith("_") and n not in hidden]
    return {name: getattr(widget, name) for name in names}


class Contexts:
    """Contexts of a browser whose pages are used again: a new page costs a second of CPU time."""

    def __init__(self, browser):
        self.browser = browser
        self.free = {}
        """Blank pages by the options of their contexts."""

    def open(self, **options):
        return Context(self.browser, options, self.free.setdefault(repr(options), []))


class Context:
    """Pages with the same options; after `close`, others may use them."""

    def __init__(self, browser, options, free):
        self.browser, self.options, self.free = browser, options, free
        self.used = []

    def new_page(self):
        if not self.free:
            self.free.append(self.browser.new_context(**self.options).new_page())
        self.used.append(self.free.pop())
        return self.used[-1]

    def close(self):
        for page in self.used:
            page.goto("about:blank")
            page.mouse.move(0, 0)
            self._restore(page)
        self.free += self.used
        self.used = []

    def _restore(self, page):
        """Give a page the size and the media of its context again."""
        if "viewport" in self.options and page.viewport_size != self.options["viewport"]:
            page.set_viewport_size(self.options["viewport"])
        page.emulate_media(**{name: self.options.get(name, usual) for name, usual in MEDIA.items()})


_shown = {}
"""By page, the `LivePage` that it shows."""


def _listen(page):
    """Tell the `LivePage` that a page shows what happens there; once for each page."""
    page.set_default_timeout(WAIT_S * 1000)
    page.on("pageerror", lambda error: _shown[page].errors.append(str(error)))
    page.on("console", lambda m: m.type == "error" and _shown[page].errors.append(m.text))
    page.on("request", lambda request: _shown[page].requests.append(request.url))
    page.expose_function("toPython", lambda *sent: _shown[page]._from_page(*sent))


class LivePage:
    """A widget on a page: ``page`` is Playwright's, ``errors`` what the console said."""

    def __init__(self, context, widget, body_style=""):
        self.context = context
        self.widget = widget
        self.errors = []
        self.requests = []
        self.page = context.new_page()
        if self.page not in _shown:
            _listen(self.page)
        _shown[self.page] = self
        shell = SHELL.replace("STYLES", str(widget._css)).replace("BODY_STYLE", body_style)
        self.page.set_content(shell)
        traits = traits_of(widget)
        self.changed = set()
        self.replies = []
        self.messages = []
        widget.send = self.messages.append
        widget.observe(self._note, names=list(traits))
        self.module = base64.b64encode(str(widget._esm).encode()).decode()
        self.show()

    def show(self):
        """Draw the widget as it is now."""
        self.page.evaluate(START, [self.module, json.dumps(traits_of(self.widget)), MODEL])

    def _note(self, change):
        if change["name"] == "reply":  # each is a message of its own
            self.replies.append(change["new"])
        else:
            self.changed.add(change["name"])

    def _from_page(self, changes, content=None):
        if content is not None:
            self.widget._handle_custom_msg(content, [])
        for name, value in changes.items():
            setattr(self.widget, name, value)
        return self._changes()

    def _changes(self):
        """Return what changed, as text: Playwright takes long for values with many parts."""
        replies, self.replies = self.replies, []
        names, self.changed = self.changed, set()
        changes = {name: getattr(self.widget, name) for name in names}
        messages, self.messages[:] = list(self.messages), []
        return json.dumps({**changes, "replies": replies, "messages": messages})

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
        self.push()  # what came after the last one

    def settle(self):
        """Wait until the answer to the last request is drawn."""
        self.page.locator(".dlc-explorer:not([aria-busy])").wait_for()
        self._next_frame()

    def resize(self, width, height=None):
        """Give the window another size."""
        size = self.page.viewport_size
        self.page.set_viewport_size({"width": width, "height": height or size["height"]})
        self._next_frame()
        self._next_frame()  # panes are arranged after the first

    def use_media(self, **media):
        """Change what the page is told of its user (`MEDIA`), the ground of its body included."""
        self.page.emulate_media(**media)
        is_dark = media.get("color_scheme") == "dark"
        self.page.evaluate("(style) => { document.body.style = style; }", DARK if is_dark else "")
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

    def open_tab(self, name):
        """Open a picture or a text; one that stands with others under a tab, by way of that."""
        if not self.key(f"tab {name}").count():
            groups = {tab["name"]: tab["group"] for tab in self.widget.picture["tabs"]}
            self.click(f"tabs {groups[name]}")
        self.click(f"tab {name}")
