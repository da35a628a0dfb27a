/*
 * The loop nest as a tree: the hub from which everything else is chosen.
 */

import { count, focusable, h, paint, refill, roving } from "./dom.js";
import { Rearranging } from "./rearrange.js";

const LEAST_NAME = 5; // characters that are always seen

export class TreePane {
  constructor(app) {
    this.app = app;
    this.rows = new Map();
    this.items = h("div", { class: "dlc-rows", role: "tree", "aria-label": "Loop nest" });
    this.notes = h("p", { class: "dlc-soft" });
    this.pending = h("ul", { class: "dlc-obligations", "aria-label": "Pending obligations", hidden: true });
    this.root = h("section", { class: "dlc-pane dlc-tree", "aria-label": "Loop nest" },
      h("div", { class: "dlc-body" }, this.items, this.pending, this.notes));
    this.rearranging = new Rearranging(this, app);
    roving(this.items, {
      choose: (item, key) => (key === "Enter" ? app.focusMoves() : app.choose(item.dataset.key)),
      parentOf: (items, at) => items.find((item) => item.dataset.key === items[at].dataset.parent),
      childOf: (items, at) => items.find((i) => i.dataset.parent === items[at].dataset.key),
    });
  }

  draw(tree) {
    this.rows = new Map(tree.rows.map((row) => [row.key, row]));
    this.root.style.setProperty("--dlc-rows", tree.rows.length);
    this.items.style.setProperty("--dlc-deepest", Math.max(1, ...tree.rows.map(({ depth }) => depth)));
    const withBars = tree.rows.map((row) => [row, this.barsOf(row)]);
    refill(this.items, withBars, ([row, bars]) => this.row(row, bars));
    const notes = tree.inputs.map((text) => `input ${text}`);
    notes.push(...tree.inlined.map((name) => `${name} is inlined`));
    this.notes.textContent = notes.join(" · ");
    this.pending.hidden = !tree.pending.length;
    this.pending.replaceChildren(...tree.pending.map(({ text, hint }) => h("li", {},
      h("b", { text: hint ? "◦ pending " : "◦ done by lowering " }), h("span", { text }),
      hint ? h("span", { class: "dlc-soft", text: ` — ${hint}` }) : null)));
  }

  preview(view, reply) {
    this.rearranging.preview(view, reply);
  }

  /** Mark the loops that a move is about, and what stands in its way. */
  flag(keys, conflicts) {
    for (const row of this.items.querySelectorAll(".dlc-row")) {
      row.classList.toggle("dlc-about", keys.includes(row.dataset.key));
      row.classList.toggle("dlc-conflict", conflicts.includes(row.dataset.key));
    }
  }

  row(row, barsOf) {
    const bars = barsOf.map((bar) =>
      h("i", { class: "dlc-bar-mark", style: { "--dlc-depth": bar.depth, background: paint(bar.colors) } }));
    const style = { "--dlc-depth": row.depth };
    if (row.type === "statement" || row.type === "barrier") {
      return h("div", { class: `dlc-row dlc-statement dlc-${row.type}`, style, title: row.name,
        "data-key": row.key,
        "aria-hidden": "true" }, ...bars, h("span", { class: "dlc-clip", text: row.name }));
    }
    const cells = row.type === "stage"
      ? [h("span", { class: "dlc-stage-name", text: row.name }),
        h("span", { class: "dlc-soft dlc-clip", text: row.detail }),
        row.pending.length ? h("span", { class: "dlc-pill dlc-pending", text: "◦ pending",
          title: row.pending.join("; ") }) : null]
      : [h("span", { class: "dlc-loop-name", text: row.name,
        style: { minWidth: `${Math.min(row.name.length, LEAST_NAME)}ch` } }),
        row.axis === "data" ? null : h("span", { class: "dlc-soft",
          text: row.axis === "scan" ? "time" : "reduction" }),
        row.kind === "serial" ? null : h("span", { class: "dlc-pill", "data-sign": row.sign || null,
          text: row.sign ? `${row.sign} ${row.kind}` : row.kind }),
        h("span", { class: "dlc-extent",
          text: typeof row.extent === "number" ? count(row.extent) : row.extent })];
    return focusable("div", {
      class: `dlc-row dlc-${row.type}`, role: "treeitem", tabindex: -1, style,
      "data-item": true, "data-key": row.key, "data-parent": row.parent, "data-name": row.name,
      "aria-label": row.label, "aria-level": row.depth + 1, "aria-selected": "false",
      title: row.made_by ? `${row.label}; made by: ${row.made_by}` : row.label,
      on: { click: (event) => { event.currentTarget.focus(); this.app.choose(row.key); } },
    }, ...bars, ...cells);
  }

  /** The loops whose bars pass through a row: its own and those around it. */
  barsOf(row) {
    const bars = [];
    for (let at = row; at; at = this.rows.get(at.parent)) {
      if (at.type === "loop") bars.push({ depth: at.depth, colors: at.colors });
    }
    return bars;
  }

  mark(key) {
    const items = [...this.items.querySelectorAll("[data-item]")];
    const stop = items.find((item) => item.dataset.key === key) ?? items[0];
    for (const item of items) {
      item.setAttribute("aria-selected", String(item.dataset.key === key));
      item.tabIndex = item === stop ? 0 : -1;
    }
  }

  /** The element that takes the focus when the tree gets it. */
  home() {
    return this.items.querySelector('[data-item][tabindex="0"]');
  }
}
