/*
 * What is said of the chosen box, frame or arrow, and what can be done with it.
 */

import { button, h } from "./dom.js";

const MOST_VERDICTS = 12;

export class DetailPane {
  constructor(app) {
    this.app = app;
    this.body = h("div", { class: "dlc-graph-detail-body" });
    this.root = h("section", { class: "dlc-pane dlc-graph-detail", "aria-label": "Details" },
      h("h3", { text: "Details" }), this.body);
    this.root.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !app.chosen) return;
      event.stopPropagation();
      app.picture.focus(app.chosen);
    });
  }

  focus() {
    this.root.querySelector("button")?.focus();
  }

  draw(item, verdicts, head) {
    if (!item) {
      this.body.replaceChildren(h("p", { class: "dlc-soft",
        text: "Nothing is chosen. Click on a box, a frame or an arrow, or move there with the arrow keys." }));
      return;
    }
    this.body.replaceChildren(...(item.source ? this.edge(item, verdicts, head) : this.box(item)));
  }

  box(item) {
    const { kernel } = item, isOpen = this.app.model.get("opened") === `kernel ${kernel}`;
    const canTurn = item.is_closed || !item.lines;
    return [facts(item.facts), h("div", { class: "dlc-controls" },
      canTurn ? button("turn", item.is_closed ? "Open" : "Close",
        item.is_closed ? "Open: show what is inside" : "Close: draw it as one box",
        () => this.app.send("turn", { key: item.key })) : null,
      kernel === null ? null : button("schedule", isOpen ? "Schedule is open" : "Open schedule",
        isOpen ? "Schedule is open in the Explorer below" : "Open schedule: show the loops of the kernel in the Explorer",
        () => this.app.send("schedule", { kernel })))];
  }

  edge(item, verdicts, head) {
    if (!item.verdicts.length) return [h("p", { text: "This value is an input: nothing is decided about it." })];
    const shown = item.verdicts.slice(0, MOST_VERDICTS), more = item.verdicts.length - shown.length;
    return [...shown.map((number) => this.verdict(number, verdicts.each[number], head)),
      more ? h("p", { class: "dlc-soft", text: `… and ${more} more edges between these: open the boxes to see them.` }) : null]
      .filter(Boolean);
  }

  verdict(number, { facts: said, is_fused: isFused, wish }, { why_not_decided: why }) {
    const wanted = (kind) => this.app.send("wish", { verdict: number, kind });
    const tool = (kind, text, title) => button(`wish ${kind}`, text, why ? `${text}: ${why}` : title,
      () => wanted(kind), Boolean(why));
    return h("div", { class: "dlc-graph-verdict" }, facts(said), h("div", { class: "dlc-controls" },
      isFused ? tool("keep apart", "Keep apart", "Keep apart: make two kernels of it, and run the passes again")
        : tool("fuse", "Fuse", "Fuse: ask for one kernel, and run the passes again"),
      wish ? tool("", "Leave to the rules", "Leave to the rules: take back what you asked for") : null));
  }
}

function facts(rows) {
  return h("dl", { class: "dlc-graph-said" }, ...rows.flatMap(([label, value]) => [
    h("dt", { text: label }), h("dd", { text: value })]));
}
