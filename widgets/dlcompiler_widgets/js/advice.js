/*
 * Advice in words: what the rules say of a loop; a click chooses it, a button takes the step.
 */

import { button, focusable, h } from "./dom.js";

const MARKS = { high: "▲", medium: "◆", low: "●" };

export class AdvicePane {
  constructor(app) {
    this.app = app;
    this.summary = h("span", { class: "dlc-soft" });
    this.list = h("ul", { class: "dlc-advice-list", "aria-label": "Advice" });
    this.source = h("p", { class: "dlc-soft dlc-advice-source" });
    this.root = h("section", { class: "dlc-pane dlc-advice", "aria-label": "Advice" },
      this.summary, this.list, this.source);
  }

  draw({ rows, summary }) {
    this.summary.textContent = summary;
    this.count = rows.length;
    this.list.hidden = !rows.length;
    this.list.replaceChildren(...rows.map((row) => this.item(row)));
    this.explain(null, rows.length);
  }

  item(row) {
    const explain = { mouseenter: () => this.explain(row), focus: () => this.explain(row) };
    const text = focusable("button", {
      type: "button", class: "dlc-advice-text", "data-key": `advice ${row.rule} ${row.key}`,
      "aria-label": `${row.severity}: ${row.rule}, ${row.place}: ${row.text}. Choose ${row.place}`,
      on: { ...explain, click: () => this.app.choose(row.key) },
    }, h("span", { class: `dlc-severity dlc-severity-${row.severity}`, "aria-hidden": "true",
      text: MARKS[row.severity] }),
    h("b", { text: row.rule }), h("span", { class: "dlc-soft", text: ` ${row.place}` }),
    h("span", { class: "dlc-advice-words", text: row.text }));
    const label = `Try: ${row.step_text}`;
    const step = row.step && button(`try ${row.rule} ${row.key}`, label, label,
      () => this.app.send("apply", { step: row.step }), false, { class: "dlc-advice-step" });
    const open = row.opens && button(`open ${row.opens} ${row.key}`, row.opens_text, row.opens_text,
      () => this.app.send(row.opens, {}), false, { class: "dlc-advice-step" });
    const node = h("li", { class: "dlc-advice-item" }, ...[text, step, open].filter((part) => part));
    node.key = row.key;
    return node;
  }

  /** Say where a rule comes from. */
  explain(row, count = 1) {
    this.source.hidden = !count;
    this.source.textContent = row ? `Source: ${row.source}.`
      : "▲ costs most time · ◆ may cost time. Point at a line to see its source.";
  }

  mark(key) {
    for (const node of this.list.children) {
      node.classList.toggle("dlc-own", key !== null && node.key === key);
    }
  }
}
