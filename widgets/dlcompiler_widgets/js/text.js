/*
 * The program as text, in one form at a time; each line knows the loops that it comes from.
 */

import { button, count, focusItem, focusable, h, message, refill, roving } from "./dom.js";
import { programLine, renumber } from "./lines.js";
import { PassControls } from "./passes.js";
import { showTabs } from "./tabs.js";

/** What makes a line an item of the list that arrows move in. */
const LINK = { role: "button", tabindex: -1, "data-item": "", "data-lm-suppress-shortcuts": "true" };

export class TextPane {
  constructor(app) {
    this.app = app;
    this.headline = h("div", { class: "dlc-headline" });
    this.note = h("span", { class: "dlc-soft dlc-clip dlc-text-note" });
    this.found = h("span", { class: "dlc-soft dlc-found" });
    this.search = h("input", { type: "search", placeholder: "find", "aria-label": "Find in the text",
      on: { input: () => this.find(0), keydown: (event) => event.key === "Enter" && this.find(1) } });
    this.passes = new PassControls(app);
    this.lines = focusable("div", {
      class: "dlc-lines", role: "group", "data-key": "lines",
      "aria-label": "Program text; Enter chooses the loop of a line, n goes to its next line",
    });
    roving(this.lines, {
      choose: (item, key) => (key === "Enter" || key === " ") && item.click(),
      keys: { n: (item) => this.next(item) },
    });
    this.root = h("section", { class: "dlc-pane dlc-program", "aria-label": "Program" },
      this.passes.root,
      h("div", { class: "dlc-text-bar" }, this.note, this.found, this.search,
        this.wrapButton = button("wrap", "Wrap", "Break lines that are too long, or scroll to their ends",
          () => this.wrap(!this.isWrapped)),
        button("copy text", "Copy", "Copy the lines that are shown", () => this.copy())),
      this.lines);
    this.wrap(app.memory.get("wrap", "boolean") ?? true, false);
  }

  /** Break long lines, or leave them to be scrolled. */
  wrap(isWrapped, isWish = true) {
    this.isWrapped = isWrapped;
    this.lines.classList.toggle("dlc-wrap", isWrapped);
    this.wrapButton.setAttribute("aria-pressed", String(isWrapped));
    if (isWish) this.app.memory.set("wrap", isWrapped);
  }

  draw(model) {
    const { tab, tabs: all, note, is_stale: isStale } = model;
    showTabs(this.headline, "Texts", all, tab, (name) => this.app.send("text", { tab: name }));
    this.note.textContent = this.note.title = note;
    this.passes.draw(model.passes);
    this.lines.classList.toggle("dlc-stale", Boolean(isStale));
    this.lines.setAttribute("aria-busy", String(Boolean(isStale)));
    if (this.tab !== tab) this.lines.scrollTop = 0;
    this.tab = tab;
    this.drawLines(model);
  }

  drawLines({ lines, before, left_out: leftOut, error }) {
    this.shown = lines.filter(({ status }) => status !== "removed");
    const besidesNumber = ({ number, ...line }) => JSON.stringify([line, this.choices(line)]);
    refill(this.lines, lines, (line) => this.line(line), besidesNumber);
    lines.forEach((line, n) => renumber(this.lines.children[n], line));
    const gap = (number, where) => h("div", { class: "dlc-soft dlc-gap",
      text: `… ${count(number)} more lines ${where} are not shown` });
    if (before) this.lines.prepend(gap(before, "above"));
    if (leftOut) this.lines.append(gap(leftOut, "below"));
    if (error) this.lines.append(message(error));
  }

  line(line) {
    const node = programLine(line);
    node.line = line;
    if (line.status === "removed") return node;
    node.axes = [...node.querySelectorAll(".dlc-axis")];
    const choices = this.choices(line);
    if (choices.length > 1) {
      const loops = `of the loops ${choices.join(", ")}: click again for the next`;
      node.title = line.about ? `${line.about}; ${loops}` : loops;
    }
    if (choices.length) {
      node.classList.add("dlc-link");
      for (const [name, value] of Object.entries(LINK)) node.setAttribute(name, value);
      node.addEventListener("click", (event) => {
        this.pick(event.target.keys?.length ? event.target.keys : this.choices(line));
        this.app.pointFrom(this.tab, line.number);
      });
    }
    return node;
  }

  /** What a click on a line may choose: its loops, else the loop around it, else its stage. */
  choices({ keys, within = [] }) {
    const loops = keys.filter((key) => this.app.isLoop(key));
    if (loops.length) return loops;
    const around = within.find((key) => this.app.isLoop(key));
    return around ? [around] : keys.slice(0, 1);
  }

  /** Choose the first of some loops; where it is chosen already, the next. */
  pick(keys) {
    this.app.choose(keys[(keys.indexOf(this.app.chosen) + 1) % keys.length]);
  }

  /** Mark the lines of the chosen loop, and those that stand inside them. */
  mark(key) {
    const madeBy = this.app.madeBy(key);
    let inside = Infinity;
    this.own = [];
    for (const node of this.lines.querySelectorAll(".dlc-line")) {
      const { line, axes } = node;
      if (line.status === "removed") continue;
      if (line.depth <= inside) inside = Infinity;
      const isOwn = key !== null && line.keys.includes(key);
      const isInside = line.within ? line.within.includes(key) : line.depth > inside;
      node.classList.toggle("dlc-own", isOwn);
      node.classList.toggle("dlc-inside", !isOwn && isInside);
      const marked = axes.filter((axis) => axis.keys.includes(key));
      for (const axis of axes) axis.classList.toggle("dlc-own-axis", marked.includes(axis));
      if (line.state) this.markStep(node, madeBy === line.state);
      if (isOwn && !line.within) inside = Math.min(inside, line.depth);
      if (isOwn || marked.length) this.own.push(node);
    }
    if (this.search.value && key === this.marked) this.find(0);
    else {
      this.say(key);
      // In the next frame: asking for places now would lay out a page that is still being drawn.
      this.frame ??= requestAnimationFrame(() => {
        this.frame = null;
        this.reveal();
      });
    }
    this.marked = key;
    this.reach();
  }

  /** Show an instruction of an accelerator, which is a line of the text; null shows none. */
  pointAt(line) {
    const nodes = [...this.lines.querySelectorAll(".dlc-line")];
    const at = this.tab === "source" && nodes.find((node) => node.line.number === line);
    for (const node of nodes) node.classList.toggle("dlc-pointed", node === at);
    if (at && !this.isSeen(at)) this.scrollTo(at);
  }

  markStep(node, isMaker) {
    let sign = node.querySelector(".dlc-sign");
    if (!sign && !isMaker) return;
    if (!sign) node.querySelector(".dlc-text").before(sign = h("span", { class: "dlc-sign" }));
    sign.textContent = isMaker ? "●" : "";
    sign.title = isMaker ? "This step made the chosen loop" : "";
  }

  /** Say how much of the text is the chosen loop's. */
  say(key) {
    const isEmpty = !key || !this.shown?.length;
    this.found.textContent = isEmpty ? "" : this.own.length
      ? `${count(this.own.length)} of ${count(this.shown.length)} lines`
      : `no line comes from ${key}`;
    this.found.title = isEmpty ? "" : this.own.length ? `Lines of ${key}`
      : "The loop was removed, or its work was merged with other lines.";
  }

  /** Show the lines that hold the typed text: go to the first (0), or on to the next (1). */
  find(step) {
    const wanted = this.search.value.toLowerCase();
    const isMatch = ({ line }) => wanted && line.text.toLowerCase().includes(wanted);
    const all = [...this.lines.querySelectorAll(".dlc-line")];
    for (const node of all) node.classList.toggle("dlc-match", Boolean(isMatch(node)));
    if (!wanted) return this.say(this.app.chosen);
    const matches = all.filter(isMatch);
    this.at = step ? (this.at + step) % matches.length : 0;
    this.found.textContent = matches.length ? `${this.at + 1} of ${count(matches.length)} found`
      : "not found in these lines";
    if (matches.length) this.scrollTo(matches[this.at]);
  }

  /** Scroll to the first marked line, unless one is in view. */
  reveal() {
    if (this.own.length && !this.own.some((node) => this.isSeen(node))) this.scrollTo(this.own[0]);
  }

  isSeen({ offsetTop, offsetHeight }) {
    const { scrollTop, clientHeight } = this.lines;
    return offsetTop >= scrollTop && offsetTop + offsetHeight <= scrollTop + clientHeight;
  }

  scrollTo(node) {
    this.lines.scrollTop = node.offsetTop - this.lines.clientHeight / 4;
  }

  /** Go from a line to the next marked one, and from the last one to the first. */
  next(item) {
    const items = [...this.lines.querySelectorAll("[data-item]")];
    const own = this.own.filter((node) => items.includes(node));
    const found = own.find((node) => items.indexOf(node) > items.indexOf(item)) ?? own[0];
    if (found) focusItem(items, found);
  }

  /** The line that the Tab key comes to: a marked one, if there is one. */
  reach() {
    const items = [...this.lines.querySelectorAll("[data-item]")];
    if (items.includes(document.activeElement)) return;
    const home = items.find((item) => item.classList.contains("dlc-own")) ?? items[0];
    for (const item of items) item.tabIndex = item === home ? 0 : -1;
    this.lines.tabIndex = home ? -1 : 0;
  }

  home() {
    return this.lines.querySelector('[data-item][tabindex="0"]') ?? this.lines;
  }

  async copy() {
    const lines = this.shown ?? [];
    try {
      await navigator.clipboard.writeText(lines.map((line) => `${line.text}\n`).join(""));
      this.app.say({ tone: "info", details: [], text: `Copied ${count(lines.length)} lines.` });
    } catch {
      window.getSelection().selectAllChildren(this.lines);
      this.app.say({ tone: "info", details: [],
        text: "The clipboard is not available: the text is selected, copy it with Ctrl+C." });
    }
  }
}
