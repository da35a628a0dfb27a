/*
 * The Explorer in the browser: draws the view models that arrive, and sends what the user wants.
 *
 * Long because anywidget loads one module, and there is no build step.
 *
 * Nothing is decided here. `view` is a whole snapshot; a pane is rebuilt only when its part of the
 * snapshot changed, and keeps the keyboard focus. All text goes through textContent.
 */

const SVG = "http://www.w3.org/2000/svg";
const INDENT = 14;
const LANE = 16;
const HISTORY_ROW = 24;
const KEYS = [
  ["↑ ↓ ← → Home End, letters", "move in the loop nest and in the history"],
  ["Enter", "from a loop to its moves; from a state: go there"],
  ["Esc", "from the moves back to the loop"],
  ["Ctrl+Z, Ctrl+Shift+Z", "undo, redo"],
  ["Tab", "to the next part"],
];

/** Make an element: attributes by name, `on` for listeners, `text` for its text. */
function h(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    } else if (name === "text") node.textContent = value;
    else if (name === "style") Object.assign(node.style, value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

/**
 * Make an element that takes the focus. Without the attribute, JupyterLab and Notebook 7 take
 * letters typed on it for their own commands: "b" would insert a cell.
 */
function focusable(tag, attributes, ...children) {
  return h(tag, { "data-lm-suppress-shortcuts": "true", ...attributes }, ...children);
}

function svg(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const count = (number) => number.toLocaleString("en");

/** The colours of an axis, side by side, as a CSS background. */
function paint(colors) {
  if (colors.length < 2) return colors[0] ?? "transparent";
  const share = 100 / colors.length;
  const stops = colors.map((color, n) => `${color} ${n * share}% ${(n + 1) * share}%`);
  return `linear-gradient(to bottom, ${stops.join(", ")})`;
}

/** Let arrows, Home, End and letters move among the items of a list that is one tab stop. */
function roving(container, { choose, parentOf = null, childOf = null }) {
  container.addEventListener("keydown", (event) => {
    const items = [...container.querySelectorAll("[data-item]")];
    const at = items.indexOf(document.activeElement);
    if (at < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    const target = {
      ArrowDown: () => items[at + 1],
      ArrowUp: () => items[at - 1],
      Home: () => items[0],
      End: () => items[items.length - 1],
      ArrowLeft: () => parentOf && parentOf(items, at),
      ArrowRight: () => childOf && childOf(items, at),
      Enter: () => items[at],
      " ": () => items[at],
    }[event.key];
    const found = target ? target() : typed(items, at, event.key);
    if (!target && !found) return;
    event.preventDefault();
    event.stopPropagation();
    if (!found) return;
    for (const item of items) item.tabIndex = item === found ? 0 : -1;
    found.focus();
    choose(found, event.key);
  });
}

/** The next item whose name begins with a typed letter. */
function typed(items, at, key) {
  if (key.length !== 1 || !/\S/.test(key)) return null;
  const later = [...items.slice(at + 1), ...items.slice(0, at)];
  return later.find((item) => item.dataset.name?.toLowerCase().startsWith(key.toLowerCase()));
}

class Explorer {
  constructor(model, host, signal) {
    this.model = model;
    this.id = Math.random().toString(36).slice(2, 8);
    this.sent = 0;
    this.started = new Map();
    this.drawn = {};
    this.view = {};
    this.lastSeq = -1;
    this.build(host);
    const update = () => this.redraw();
    model.on("change:view", update);
    signal?.addEventListener("abort", () => model.off("change:view", update));
    this.draw(model.get("view"));
  }

  // -- the frame -----------------------------------------------------------------------------

  build(host) {
    const pane = (name, label, ...children) =>
      h("section", { class: `dlc-pane dlc-${name}`, "aria-label": label }, ...children);
    this.bar = h("div", { class: "dlc-bar", role: "toolbar", "aria-label": "Schedule" });
    this.tree = h("div", { class: "dlc-rows", role: "tree", "aria-label": "Loop nest" });
    this.inputs = h("p", { class: "dlc-soft" });
    this.moves = h("div", { class: "dlc-moves" });
    this.why = h("div", { class: "dlc-why" });
    this.programHead = h("div", { class: "dlc-head" });
    this.lines = focusable("div", {
      class: "dlc-lines", tabindex: 0, role: "region", "aria-label": "Lowered program",
    });
    this.states = h("div", { class: "dlc-states", role: "listbox", "aria-label": "History" });
    this.status = h("div", { class: "dlc-status", role: "status", "aria-live": "polite" });
    this.code = h("div", { class: "dlc-code", hidden: true });
    this.root = h("div", { class: "dlc-explorer", "data-latency-ms": "" },
      this.bar,
      this.code,
      h("div", { class: "dlc-grid" },
        pane("tree", "Loop nest", h("h3", { text: "Loop nest" }), this.tree, this.inputs),
        pane("palette", "Moves", this.moves, this.why),
        pane("program", "Program", this.programHead, this.lines),
        pane("history", "History", h("h3", { text: "History" }), this.states)),
      this.status);
    roving(this.tree, {
      choose: (item, key) => (key === "Enter" ? this.toPalette() : this.choose(item.dataset.key)),
      parentOf: (items, at) => items.find((item) => item.dataset.key === items[at].dataset.parent),
      childOf: (items, at) => items.find((i) => i.dataset.parent === items[at].dataset.key),
    });
    roving(this.states, {
      choose: (item, key) => {
        if (key === "Enter" || key === " ") this.send("jump", { id: item.dataset.key });
      },
    });
    this.moves.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.toTree();
    });
    this.root.addEventListener("keydown", (event) => this.shortcut(event));
    host.append(this.root);
  }

  /** Ctrl+Z, Ctrl+Shift+Z and ?, except where a text is being edited. */
  shortcut(event) {
    if (event.key === "?" && !["INPUT", "TEXTAREA"].includes(event.target.tagName)) {
      event.stopPropagation();
      this.help();
    }
    const isUndo = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z";
    if (!isUndo || ["INPUT", "TEXTAREA"].includes(event.target.tagName)) return;
    event.preventDefault();
    event.stopPropagation();
    this.send(event.shiftKey ? "redo" : "undo");
  }

  help() {
    this.say({ text: "Keys:", tone: "info", details: KEYS });
  }

  toTree() {
    this.tree.querySelector('[data-item][tabindex="0"]')?.focus();
  }

  toPalette() {
    this.moves.querySelector("button, input")?.focus();
  }

  // -- intents and answers -------------------------------------------------------------------

  send(op, args = {}) {
    this.sent += 1;
    const id = `${this.id}-${this.sent}`;
    this.started.set(id, performance.now());
    this.root.setAttribute("aria-busy", "true");
    this.model.set("intent", { id, op, args });
    this.model.save_changes();
  }

  /** Draw the newest snapshot in the next frame, however many arrived. */
  redraw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = null;
      const view = this.model.get("view");
      if (view.seq <= this.lastSeq || this.isStale(view.reply)) return;
      this.draw(view);
      this.root.offsetHeight; // the layout is part of what the user waits for
      this.measure(view.reply);
    });
  }

  /** Whether a snapshot answers a request of this view that a later one has overtaken. */
  isStale(reply) {
    const [id, number] = String(reply ?? "").split("-");
    return id === this.id && Number(number) < this.sent;
  }

  measure(reply) {
    if (!this.started.has(reply)) return;
    const latency = performance.now() - this.started.get(reply);
    this.started.clear();
    this.root.dataset.latencyMs = latency.toFixed(1);
    this.root.dataset.reply = reply;
    this.root.removeAttribute("aria-busy");
    this.model.set("last_latency_ms", latency);
    this.model.save_changes();
  }

  choose(key) {
    if (key === this.chosen) return;
    this.mark(key);
    this.send("choose", { key });
  }

  // -- drawing -------------------------------------------------------------------------------

  draw(view) {
    if (!view.tree) return;
    this.lastSeq = view.seq;
    this.view = view;
    this.rows = new Map(view.tree.rows.map((row) => [row.key, row]));
    const { name, target, undo, redo, steps, known, measuring } = view;
    const focus = this.focusPlace();
    this.pane("bar", { name, target, undo, redo, steps, known, measuring }, (v) => this.drawBar(v));
    this.pane("tree", view.tree, (v) => this.drawTree(v));
    this.pane("palette", view.palette, (v) => this.drawPalette(v));
    this.pane("program", { program: view.program, modes: view.modes }, (v) => this.drawProgram(v));
    this.pane("history", view.history, (v) => this.drawHistory(v));
    this.pane("status", view.status, (v) => this.drawStatus(v));
    this.mark(view.chosen);
    this.restoreFocus(focus);
  }

  /** Rebuild a pane if what it shows changed. */
  pane(name, value, build) {
    const text = JSON.stringify(value);
    if (this.drawn[name] === text) return;
    this.drawn[name] = text;
    build(value);
  }

  /** Where the keyboard is: the list it is in, and the key of the thing. */
  focusPlace() {
    const active = document.activeElement;
    if (!this.root.contains(active)) return null;
    const list = [this.bar, this.tree, this.moves, this.states].find((l) => l.contains(active));
    return list ? { list, key: active.dataset.key, active } : null;
  }

  restoreFocus(place) {
    if (!place || this.root.contains(place.active)) return;
    const same = [...place.list.querySelectorAll("[data-key]")].find(
      (node) => node.dataset.key === place.key && !node.disabled,
    );
    const fallback = place.list === this.bar ? this.bar.querySelector("button") : null;
    const home = this.tree.querySelector('[data-item][tabindex="0"]');
    (place.list === this.tree ? home : same ?? fallback ?? home)?.focus({ preventScroll: true });
  }

  drawBar(view) {
    const button = (key, text, title, action, disabled) =>
      focusable("button", {
        type: "button", "data-key": key, title, text, "aria-label": title,
        "aria-disabled": disabled ? "true" : null,
        on: { click: () => !disabled && action() },
      });
    this.bar.replaceChildren(
      h("div", { class: "dlc-title" },
        h("strong", { text: view.name }),
        h("span", { class: "dlc-soft", text: `${view.target} · ${view.steps} steps` })),
      button("undo", "↶ Undo", view.undo ? `Undo: ${view.undo}` : "Nothing to undo",
        () => this.send("undo"), !view.undo),
      button("redo", "↷ Redo", view.redo ? `Redo: ${view.redo}` : "Nothing to redo",
        () => this.send("redo"), !view.redo),
      this.measureButton(view.measuring, button),
      button("copy", "Copy as Python", "Copy the steps as Python", () => this.copy()),
      button("help", "?", "Show the keys", () => this.help()),
      h("span", { class: "dlc-known", text: view.known.join(" · ") }));
  }

  measureButton(measuring, button) {
    if (!measuring) return null;
    if (measuring.state === "running") {
      return button("measure", "◌ Cancel", "Cancel measuring", () => this.send("cancel"));
    }
    const isWaiting = measuring.state === "cancelling";
    return button("measure", isWaiting ? "Cancelling…" : "Measure",
      "Measure this state in a worker process", () => this.send("measure"), isWaiting);
  }

  drawTree(tree) {
    this.tree.replaceChildren(...tree.rows.map((row) => this.treeRow(row)));
    const notes = tree.inputs.map((text) => `input ${text}`);
    notes.push(...tree.inlined.map((name) => `${name} is inlined`));
    notes.push(...tree.obligations.map((text) => `owed: ${text}`));
    this.inputs.textContent = notes.join(" · ");
  }

  treeRow(row) {
    const bars = this.barsOf(row).map((bar) =>
      h("i", { class: "dlc-bar-mark", style: {
        left: `${bar.depth * INDENT + 4}px`, background: paint(bar.colors) } }));
    const indent = { paddingLeft: `${row.depth * INDENT + 14}px` };
    if (row.type === "statement") {
      return h("div", { class: "dlc-row dlc-statement", style: indent, title: row.name,
        "aria-hidden": "true" }, ...bars, h("span", { class: "dlc-clip", text: row.name }));
    }
    const cells = row.type === "stage"
      ? [h("span", { class: "dlc-stage-name", text: row.name }),
        h("span", { class: "dlc-soft dlc-clip", text: row.detail })]
      : [h("span", { class: "dlc-loop-name", text: row.name }),
        row.axis === "reduce" ? h("span", { class: "dlc-soft", text: "reduction" }) : null,
        row.kind === "serial" ? null : h("span", { class: "dlc-pill", text: row.kind }),
        h("span", { class: "dlc-extent", text: count(row.extent) })];
    return focusable("div", {
      class: `dlc-row dlc-${row.type}`, role: "treeitem", tabindex: -1, style: indent,
      "data-item": true, "data-key": row.key, "data-parent": row.parent, "data-name": row.name,
      "aria-label": row.label, "aria-level": row.depth + 1, "aria-selected": "false",
      title: row.made_by ? `${row.label}; made by: ${row.made_by}` : row.label,
      on: { click: (event) => { event.currentTarget.focus(); this.choose(row.key); } },
    }, ...bars, ...cells.filter((cell) => cell));
  }

  /** The loops whose bars pass through a row: its own and those around it. */
  barsOf(row) {
    const bars = [];
    for (let at = row; at; at = this.rows.get(at.parent)) {
      if (at.type === "loop") bars.push({ depth: at.depth, colors: at.colors });
    }
    return bars;
  }

  drawPalette(palette) {
    const groups = (items) => items.map((group) => this.group(group));
    this.moves.replaceChildren(
      h("h3", { text: palette.title }),
      ...groups(palette.loop),
      palette.loop.length && palette.stage.length
        ? h("h4", { text: "its stage" }) : "",
      ...groups(palette.stage));
    this.explain(null);
  }

  group(group) {
    return h("div", { class: "dlc-group", role: "group", "aria-label": group.name },
      h("span", { class: "dlc-group-name", text: group.name }),
      h("div", { class: "dlc-controls" }, ...group.items.flatMap((item) => this.move(item))));
  }

  /** The controls of a move: a button, and for its parameters inputs and suggested values. */
  move(item) {
    const explain = { mouseenter: () => this.explain(item), focus: () => this.explain(item) };
    const inputs = item.status === "illegal" ? [] : item.parameters.map((parameter) =>
      h("input", {
        type: "text", inputmode: "numeric", size: 4, value: parameter.default,
        "aria-label": `${parameter.name} of ${this.named(item)}`,
        "data-key": `${item.key} ${parameter.name}`,
        on: { ...explain, keydown: (event) => event.key === "Enter" && apply() },
      }));
    const apply = (values = null) => {
      if (item.status === "illegal" || item.status === "done") return this.refuse(item);
      const chosen = values ?? inputs.map((input) => input.value.trim());
      const numbers = chosen.map((text) => (/^-?\d+$/.test(text) ? Number(text) : text));
      const names = item.parameters.map((parameter) => parameter.name);
      const extra = Object.fromEntries(names.map((name, n) => [name, numbers[n]]));
      return this.send("apply", { step: { ...item.step, args: { ...item.step.args, ...extra } } });
    };
    const mark = { illegal: "✕ ", done: "✓ ", pending: "◦ ", legal: "" }[item.status];
    const button = focusable("button", {
      type: "button", class: `dlc-move dlc-${item.status}`, "data-key": item.key,
      "aria-disabled": ["illegal", "done"].includes(item.status) ? "true" : null,
      "aria-label": this.spoken(item), text: mark + item.text,
      on: { ...explain, click: () => apply() },
    });
    const hasChips = item.parameters.length === 1 && inputs.length === 1;
    const chips = hasChips ? item.parameters[0].suggested.map((value) =>
      focusable("button", {
        type: "button", class: "dlc-chip", text: value, "data-key": `${item.key} = ${value}`,
        "aria-label": `${item.primitive} by ${value}`,
        on: { ...explain, click: () => apply([String(value)]) },
      })) : [];
    return [...chips, ...inputs, button];
  }

  named(item) {
    return item.text === item.primitive ? item.text : `${item.primitive} ${item.text}`;
  }

  spoken(item) {
    const text = this.named(item);
    if (item.status === "legal") return text;
    const state = { illegal: "not possible", done: "nothing to do", pending: "will owe" };
    return `${text}, ${state[item.status]}: ${item.reason}`;
  }

  /** Say what a move does, or why it cannot be done, below the palette. */
  explain(item) {
    if (!item) {
      this.why.replaceChildren(h("p", { class: "dlc-soft",
        text: "✕ not possible here · ✓ so already · ◦ leaves something to put right" }));
      return;
    }
    const lines = { because: item.because, hint: item.hint, got: item.got };
    const heads = { illegal: "not possible", done: "so already", pending: "then still owed" };
    this.why.replaceChildren(
      h("p", {}, h("strong", { text: item.primitive }), h("span", {
        text: item.status === "legal" ? ` ${item.about}`
          : ` ${heads[item.status]}${item.kind ? ` (${item.kind})` : ""}: ${item.reason}` })),
      ...Object.entries(lines).filter(([, text]) => text).map(([label, text]) =>
        h("p", { class: "dlc-soft" }, h("b", { text: `${label} ` }), h("span", { text }))));
  }

  refuse(item) {
    this.explain(item);
    this.say({ text: `${this.named(item)}: ${item.reason}`,
      tone: item.status === "illegal" ? "error" : "info",
      details: item.hint ? [["hint", item.hint]] : [] });
  }

  drawProgram({ program, modes }) {
    const change = program.step && (program.added || program.removed)
      ? `${program.step}: +${program.added} −${program.removed} lines` : "";
    this.programHead.replaceChildren(
      h("h3", { text: "Program" }),
      h("div", { class: "dlc-modes", role: "group", "aria-label": "Which program" },
        ...modes.map(({ mode, text }) => focusable("button", {
          type: "button", text, "aria-pressed": String(mode === program.mode),
          on: { click: () => this.send("mode", { mode }) },
        }))),
      h("span", { class: "dlc-soft dlc-clip", title: change, text: change }));
    const lines = program.lines.map((line) => this.programLine(line));
    if (program.left_out) {
      lines.push(h("div", { class: "dlc-soft", text: `… and ${count(program.left_out)} more lines` }));
    }
    if (program.error) lines.push(this.message(program.error));
    this.lines.replaceChildren(...lines);
  }

  programLine(line) {
    const key = line.keys.find((k) => this.rows.get(k)?.type === "loop") ?? line.keys[0];
    const mark = { same: "", added: "+", removed: "−" }[line.status];
    const tokens = line.tokens.map(({ kind, text }) =>
      (kind === "text" ? document.createTextNode(text) : h("span", { class: `dlc-${kind}`, text })));
    const node = h("div", { class: `dlc-line dlc-${line.status}`, "data-depth": line.depth },
      h("span", { class: "dlc-gutter", text: line.number ?? "" }),
      h("span", { class: "dlc-sign", text: mark }),
      h("span", { class: "dlc-text", style: { paddingLeft: `${line.depth * 2}ch` } }, ...tokens));
    node.keys = line.keys;
    if (key && line.status !== "removed") {
      node.addEventListener("click", () => this.choose(key));
      node.classList.add("dlc-link");
    }
    return node;
  }

  drawHistory(history) {
    const at = new Map(history.rows.map((row, n) => [row.id, n]));
    const x = (row) => row.lane * LANE + 10;
    const y = (n) => n * HISTORY_ROW + HISTORY_ROW / 2;
    const width = history.lanes * LANE + 8;
    const paths = history.rows.filter((row) => row.parent).map((row) => {
      const n = at.get(row.id), m = at.get(row.parent), parent = history.rows[m];
      const d = `M${x(parent)} ${y(m)}` + (row.lane === parent.lane ? "" : `L${x(parent)} ${y(n) - 9}`
        + `Q${x(parent)} ${y(n)} ${x(parent) + 9} ${y(n)}`) + `L${x(row)} ${y(n)}`;
      return svg("path", { d, class: row.is_on_path ? "dlc-on-path" : "" });
    });
    const dots = history.rows.map((row, n) => svg("circle", {
      cx: x(row), cy: y(n), r: row.is_here ? 5.5 : 4,
      class: row.is_here ? "dlc-here" : row.is_on_path ? "dlc-on-path" : "" }));
    const graph = svg("svg", { width, height: history.rows.length * HISTORY_ROW,
      "aria-hidden": "true" }, ...paths, ...dots);
    const rows = history.rows.map((row) => focusable("div", {
      class: `dlc-state${row.is_here ? " dlc-current" : ""}`, role: "option",
      tabindex: row.is_here ? 0 : -1, "data-item": true, "data-key": row.id,
      "data-name": row.step, "aria-selected": String(row.is_here), "aria-label": row.label,
      title: row.step, style: { height: `${HISTORY_ROW}px`, paddingLeft: `${width + 2}px` },
      on: { click: () => this.send("jump", { id: row.id }) },
    }, h("span", { class: "dlc-clip", text: row.step }),
    h("span", { class: "dlc-note", text: Object.values(row.notes).join(" · ") })));
    this.states.replaceChildren(graph, ...rows);
    const here = rows.find((row) => row.classList.contains("dlc-current"));
    requestAnimationFrame(() => {
      this.states.scrollTop = here.offsetTop - this.states.clientHeight / 2;
    });
  }

  drawStatus(status) {
    this.say(status);
  }

  say(status) {
    this.drawn.status = null;
    this.status.replaceChildren(this.message(status));
  }

  message({ text, tone, details }) {
    return h("div", { class: `dlc-message dlc-${tone}` },
      h("span", { text: (tone === "error" ? "✕ " : "") + text }),
      ...details.map(([label, value]) => h("span", { class: "dlc-soft" },
        h("b", { text: `${label} ` }), h("span", { text: value }))));
  }

  /** Show which loop is chosen: in the tree, and in the program with what it encloses. */
  mark(key) {
    this.chosen = key;
    const items = [...this.tree.querySelectorAll("[data-item]")];
    const stop = items.find((item) => item.dataset.key === key) ?? items[0];
    for (const item of items) {
      item.setAttribute("aria-selected", String(item.dataset.key === key));
      item.tabIndex = item === stop ? 0 : -1;
    }
    let inside = Infinity;
    for (const line of this.lines.querySelectorAll(".dlc-line")) {
      const depth = Number(line.dataset.depth);
      const isRemoved = line.classList.contains("dlc-removed");
      if (!isRemoved && depth <= inside) inside = Infinity;
      const isOwn = key !== null && !isRemoved && line.keys.includes(key);
      line.classList.toggle("dlc-own", isOwn);
      line.classList.toggle("dlc-inside", !isRemoved && !isOwn && depth > inside);
      if (isOwn) inside = Math.min(inside, depth);
    }
  }

  // -- copy as Python ------------------------------------------------------------------------

  async copy() {
    const text = this.view.python;
    let done = false;
    try {
      await navigator.clipboard.writeText(text);
      done = true;
    } catch {
      // No permission, or no secure context: the text below can be selected by hand.
    }
    const area = focusable("textarea", { readonly: true, rows: Math.min(text.split("\n").length, 14),
      "aria-label": "The steps as Python", spellcheck: "false" });
    area.value = text;
    const close = focusable("button", { type: "button", text: "Close",
      on: { click: () => { this.code.hidden = true; this.bar.querySelector('[data-key="copy"]').focus(); } } });
    this.code.replaceChildren(area, close);
    this.code.hidden = false;
    if (!done) area.select();
    this.say({ tone: "info", details: [], text: done
      ? `Copied ${text.trim().split("\n").length} lines of Python.`
      : "The clipboard is not available: copy the selected text." });
  }
}

export default {
  render({ model, el, signal }) {
    new Explorer(model, el, signal);
  },
};
