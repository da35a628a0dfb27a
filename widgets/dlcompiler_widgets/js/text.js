/*
 * The program as text, in one form at a time; each line knows the loops that it comes from.
 */

import { count, focusable, h, message } from "./dom.js";
import { programLine } from "./lines.js";
import { tabs } from "./scene.js";

export class TextPane {
  constructor(app) {
    this.app = app;
    this.head = h("div", { class: "dlc-head" });
    this.lines = focusable("div", {
      class: "dlc-lines", tabindex: 0, role: "region", "aria-label": "Program text",
    });
    this.root = h("section", { class: "dlc-pane dlc-program", "aria-label": "Program" },
      this.head, this.lines);
  }

  draw({ tab, tabs: all, lines, note, left_out: leftOut, error, is_stale: isStale }) {
    this.head.replaceChildren(
      tabs("Texts", all, tab, (name) => this.app.send("text", { tab: name })),
      h("span", { class: "dlc-soft dlc-clip", title: note, text: note }));
    const nodes = lines.map((line) => this.line(line));
    if (leftOut) {
      nodes.push(h("div", { class: "dlc-soft", text: `… and ${count(leftOut)} more lines` }));
    }
    if (error) nodes.push(message(error));
    this.lines.classList.toggle("dlc-stale", Boolean(isStale));
    this.lines.replaceChildren(...nodes);
  }

  line(line) {
    const key = line.keys.find((k) => this.app.isLoop(k)) ?? line.keys[0];
    const node = programLine(line);
    node.keys = line.keys;
    if (key && line.status !== "removed") {
      node.addEventListener("click", () => this.app.choose(key));
      node.classList.add("dlc-link");
    }
    return node;
  }

  /** Mark the lines of the chosen loop, and those that stand inside them. */
  mark(key) {
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
}
