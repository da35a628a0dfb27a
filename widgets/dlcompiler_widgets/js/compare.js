/*
 * Two states side by side, over the other panes: their steps, their metrics, their programs.
 */

import { button, focusable, h } from "./dom.js";
import { programLine } from "./lines.js";

const STEP = { same: "", "only in A": "dlc-only-a", "only in B": "dlc-only-b" };

/** A button that verifies and measures states, one after the other; the same button cancels it. */
export function measureBoth(app, key, states, { measuring, not_measured: whyNot }) {
  if (measuring?.state === "running") {
    return button(key, "◌ Cancel", `Cancel: ${measuring.doing}`, () => app.cancel());
  }
  const isWaiting = measuring?.state === "cancelling";
  return button(key, isWaiting ? "Cancelling…" : "▶ Measure both",
    whyNot || "Verify and measure both states, one after the other, in a worker process",
    () => app.send("measure", { states: [...new Set(states)] }), isWaiting || Boolean(whyNot));
}

export class ComparePane {
  constructor(app) {
    this.app = app;
    this.root = h("section", { class: "dlc-compare", role: "dialog", hidden: true,
      "aria-label": "Two states compared" });
    this.root.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.close();
    });
  }

  draw(view) {
    const wasOpen = !this.root.hidden;
    this.root.hidden = !view.a;
    if (!view.a) {
      this.root.replaceChildren();
      if (wasOpen) this.app.panes.history?.home()?.focus();
      return;
    }
    this.root.replaceChildren(
      h("div", { class: "dlc-compare-head" },
        h("h3", { text: `A: ${view.a.title}` }), h("h3", { text: `B: ${view.b.title}` }),
        button("swap", "⇄ Swap", "Exchange A and B",
          () => this.app.send("compare", { a: view.b.id, b: view.a.id })),
        button("go a", "Go to A", `Go to A: ${view.a.title}`, () => this.go(view.a.id)),
        button("go b", "Go to B", `Go to B: ${view.b.title}`, () => this.go(view.b.id)),
        measureBoth(this.app, "measure both", [view.a.id, view.b.id], view),
        button("close comparison", "✕ Close", "Close the comparison", () => this.close())),
      h("p", { text: view.summary }),
      h("div", { class: "dlc-compare-body" },
        h("div", { class: "dlc-compare-facts" }, steps(view.steps), metrics(view.metrics),
          ...view.unknown.map((text) => h("p", { class: "dlc-soft", text })), notes(view.notes)),
        program(view)),
      h("p", { class: "dlc-soft", text: `How to read: ${view.how_to_read}` }));
    if (!wasOpen) this.home().focus();
  }

  home() {
    return this.root.hidden ? null : this.root.querySelector('[data-key="close comparison"]');
  }

  go(id) {
    this.app.send("jump", { id });
    this.close();
  }

  close() {
    this.app.send("compare", {});
  }
}

/** A table; the last `numbers` columns hold numbers. */
function rows(head, body, numbers = 0) {
  const column = (text, n) => h("th", { scope: "col", text,
    class: n >= head.length - numbers ? "dlc-number" : null });
  return h("table", { class: "dlc-table" },
    h("thead", {}, h("tr", {}, ...head.map(column))), h("tbody", {}, ...body));
}

function steps(pairs) {
  return rows(["steps of A", "steps of B"], pairs.map((pair) =>
    h("tr", { class: STEP[pair.status] },
      h("td", { text: pair.a ?? "–" }), h("td", { text: pair.b ?? "–" }))));
}

/** Numbers stand right, with equally many decimals: digits of one weight stand below each other. */
function metrics(pairs) {
  if (!pairs.length) return null;
  const number = (text) => h("td", { class: "dlc-number", text });
  return rows(["metric", "unit", "A", "B", "B ÷ A"], pairs.map((pair) =>
    h("tr", {}, h("th", { scope: "row" }, h("div", { text: pair.name }),
      h("div", { class: "dlc-soft", text: pair.kind })), h("td", { text: pair.unit }),
    number(pair.a), number(pair.b), number(pair.change))), 3);
}

function notes(pairs) {
  if (!pairs.length) return null;
  return rows(["note", "A", "B"], pairs.map((pair) =>
    h("tr", {}, h("th", { scope: "row", text: pair.name }),
      h("td", { text: pair.a }), h("td", { text: pair.b }))));
}

function program(view) {
  const lines = focusable("div", { class: "dlc-lines dlc-wrap", tabindex: 0, role: "region",
    "aria-label": "Program of B against that of A" },
  ...view.problems.map((text) => h("p", { text: `✕ ${text}` })),
  ...(view.program?.lines ?? []).map((line) => programLine(line)));
  if (view.program?.left_out) {
    lines.append(h("div", { class: "dlc-soft", text: `… and ${view.program.left_out} more lines` }));
  }
  return lines;
}
