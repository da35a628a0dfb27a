/*
 * The fusion view in the browser: draws the view models that arrive, and sends what the user wants.
 * Places and verdicts are Python's; what is chosen, searched and zoomed stays here.
 */

import { Board } from "./board.js";
import { button, focusable, h, message } from "./dom.js";
import { DetailPane } from "./graph-detail.js";
import { GraphPicture } from "./graph-picture.js";
import { PartsPane } from "./graph-parts.js";
import { Notice } from "./notice.js";

const LEVELS = { blocks: "Blocks", kernels: "Kernels", calls: "Calls" };

class GraphBoard extends Board {
  constructor(model, host, signal) {
    super(model);
    this.chosen = null;
    this.title = h("strong", { class: "dlc-clip" });
    this.facts = h("dl", { class: "dlc-graph-facts" });
    this.levels = h("span", { class: "dlc-modes", role: "group", "aria-label": "What is drawn" });
    this.tools = h("span", { class: "dlc-graph-tools" });
    this.search = focusable("input", { class: "dlc-graph-search", type: "search", "data-key": "search",
      "aria-label": "Search for a call", placeholder: "Search",
      on: { input: () => this.find(), keydown: (event) => this.searchKey(event) } });
    this.found = h("span", { class: "dlc-soft dlc-graph-found", "aria-live": "polite" });
    this.picture = new GraphPicture(this);
    this.detail = new DetailPane(this);
    this.parts = new PartsPane(this);
    this.status = h("div", { class: "dlc-status", role: "status", "aria-live": "polite" });
    this.root = h("div", { class: "dlc-explorer dlc-graph" },
      h("div", { class: "dlc-bar" }, h("span", { class: "dlc-title" }, this.title), this.levels,
        this.search, this.found, this.tools),
      this.facts,
      h("div", { class: "dlc-graph-grid" }, this.picture.root, this.detail.root),
      this.parts.root, this.status);
    this.notice = new Notice(this.root, this.status);
    host.append(this.root);
    this.follow(signal, () => this.picture.close());
    this.draw();
  }

  // -- choosing --------------------------------------------------------------------------------

  /** Choose a box, a frame or an arrow by its key; null for nothing. */
  choose(key) {
    this.chosen = key;
    this.picture.mark(key);
    this.parts.mark(key);
    this.detail.draw(this.item(key), this.model.get("verdicts"), this.model.get("head"));
  }

  /** What has a key: the box or the frame of a kernel, or what stands for its only call. */
  item(key) {
    return key === null ? null : this.picture.items.get(this.picture.keyFor(key)) ?? null;
  }

  /** Choose and show what is drawn of a kernel. */
  reveal(key) {
    const at = this.picture.keyFor(key);
    if (!at) return this.say({ tone: "info", text: "This kernel is inside a closed block.", details: [] });
    this.choose(at);
    this.picture.reveal(at);
  }

  /** Stress the boxes that a search finds. */
  find() {
    const number = this.picture.find(this.search.value);
    this.found.textContent = this.search.value.trim() ? `${number} found` : "";
  }

  searchKey(event) {
    event.stopPropagation();
    if (event.key === "Enter") this.picture.next(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape" && this.search.value) {
      this.search.value = "";
      this.find();
    }
  }

  // -- drawing ---------------------------------------------------------------------------------

  draw() {
    const active = this.root.contains(document.activeElement) ? document.activeElement : null;
    const key = active?.dataset.key;
    this.drawHead(this.model.get("head"));
    const picture = this.model.get("picture"), verdicts = this.model.get("verdicts");
    if (picture !== this.shownPicture) {
      this.shownPicture = picture;
      this.picture.draw(picture);
      if (this.search.value) this.find();
    }
    this.parts.draw(this.model);
    if (verdicts !== this.shownVerdicts || picture !== this.drawnPicture || this.opened !== this.model.get("opened")) {
      [this.shownVerdicts, this.drawnPicture, this.opened] = [verdicts, picture, this.model.get("opened")];
      this.choose(this.item(this.chosen) ? this.picture.keyFor(this.chosen) : null);
    }
    this.say(this.model.get("status"));
    if (key && !this.root.contains(active)) this.restoreFocus(key);
  }

  /** Give the focus to what stands where the focused element stood. */
  restoreFocus(key) {
    const paired = { measure: "cancel", cancel: "measure" }[key];
    const found = [...this.root.querySelectorAll("[data-key]")].find(({ dataset }) => dataset.key === key)
      ?? (paired && this.root.querySelector(`[data-key="${paired}"]`));
    if (found) found.focus({ preventScroll: true });
    else if (key.startsWith("wish")) this.detail.focus();
    else this.picture.focus(this.picture.stop);
  }

  drawHead(head) {
    const picture = this.model.get("picture");
    const shown = JSON.stringify([head, picture.level, picture.levels]);
    if (shown === this.shownHead) return;
    this.shownHead = shown;
    this.title.textContent = head.title;
    this.title.title = head.title;
    this.facts.replaceChildren(...head.facts.map(([name, value, before]) => h("div", {},
      h("dt", { text: name }), h("dd", { "data-fact": name, class: before ? "dlc-graph-changed" : null },
        before ? h("span", { class: "dlc-soft", text: `${before} → ` }) : null, h("span", { text: value })))));
    this.levels.replaceChildren(...picture.levels.map((level) => focusable("button", {
      type: "button", "data-key": `level ${level}`, text: LEVELS[level],
      "aria-pressed": String(level === picture.level), on: { click: () => this.send("level", { level }) } })));
    const isBusy = Boolean(head.doing);
    this.tools.replaceChildren(
      h("span", { class: "dlc-soft", text: head.doing }),
      isBusy ? button("cancel", "Stop", "Stop measuring before the next run", () => this.send("cancel"))
        : button("measure", "Measure", "Measure: build the model, and find the time of each kernel",
          () => this.send("measure")),
      button("reset", "Reset", head.wishes.length ? `Reset: take back ${head.wishes.join("; ")}`
        : "Reset: no decision was changed", () => this.send("reset"), !head.wishes.length));
  }

  say(status) {
    const text = JSON.stringify(status);
    if (text === this.said) return;
    this.said = text;
    this.status.replaceChildren(message(status));
    this.notice.say(status);
  }
}

export const main = {
  render({ model, el, signal }) {
    new GraphBoard(model, el, signal);
  },
};

export default main;
