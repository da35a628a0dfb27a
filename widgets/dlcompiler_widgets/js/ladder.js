/*
 * The measured times of a branch: a strip of bars, and the pictures whose marks lead to states.
 */

import { button, focusable, h, roving, table, twin } from "./dom.js";
import { drawScene } from "./scene.js";

const percent = (share) => `${(100 * share).toFixed(1)}%`;

export class LadderPane {
  constructor(app) {
    this.app = app;
    this.unit = h("span", { class: "dlc-soft" });
    this.words = h("span", { class: "dlc-soft dlc-clip" });
    this.legend = h("div", { class: "dlc-ladder-legend" });
    this.bars = h("div", { class: "dlc-ladder-bars", role: "list", "aria-label": "Measured times" });
    this.lines = h("div", { class: "dlc-ladder-lines", "aria-hidden": "true" });
    this.twin = h("div", { class: "dlc-ladder-twin" });
    this.plot = h("div", { class: "dlc-ladder-plot" },
      h("div", { class: "dlc-ladder-track" }, this.lines, this.bars));
    this.headline = h("div", { class: "dlc-headline" }, this.unit, this.words, this.twin);
    this.root = h("section", { class: "dlc-pane dlc-ladder", "aria-label": "Ladder" },
      h("div", { class: "dlc-ladder-row" }, this.plot, this.legend));
    roving(this.bars, {
      choose: (item, key) => {
        if (key === "Enter" || key === " ") this.go(item.dataset.key.slice("ladder ".length));
      },
      parentOf: (items, at) => items[at - 1],
      childOf: (items, at) => items[at + 1],
    });
  }

  draw({ unit, summary, hint, notes, rows, lines, how_to_read: how, table: numbers }) {
    this.unit.textContent = unit ? `${unit}, logarithmic` : "";
    this.words.textContent = [hint || summary, ...notes].join(" ");
    this.words.title = [summary, hint, ...notes].filter((each) => each).join(" ");
    this.legend.hidden = !lines.length;
    const longest = Math.max(...lines.map(({ short }) => short.length), 0);
    this.legend.style.width = `calc(${longest}ch + 30px)`;
    this.legend.replaceChildren(...lines.map(({ text, short, place }, n) =>
      h("div", { class: `dlc-ladder-name dlc-dash-${n % 3}`, text: short, title: text,
        style: { bottom: percent(place) } })));
    this.lines.replaceChildren(...lines.map(({ share }, n) =>
      h("div", { class: `dlc-ladder-line dlc-dash-${n % 3}`, style: { bottom: percent(share) } })));
    const isOpen = this.twin.firstChild?.open;
    this.twin.replaceChildren(twin(() => table(numbers)));
    if (isOpen) this.twin.firstChild.open = true;
    this.bars.title = how;
    this.bars.replaceChildren(...rows.map((row) => this.bar(row)));
    const here = this.home();
    if (here) this.plot.scrollLeft = here.offsetLeft - this.plot.clientWidth / 2;
  }

  bar(row) {
    const isTimed = row.status === "measured";
    return h("div", { role: "listitem", class: "dlc-ladder-step" },
      focusable("button", {
        type: "button", "data-item": true, "data-key": `ladder ${row.id}`, "data-name": row.title,
        class: `dlc-ladder-bar dlc-ladder-${row.status}${row.is_here ? " dlc-current" : ""}`,
        tabindex: row.is_here ? 0 : -1, "aria-current": row.is_here ? "true" : null,
        "aria-label": row.label, title: row.label.replaceAll("; ", "\n"),
        on: { click: () => this.go(row.id) },
      },
      h("span", { class: "dlc-ladder-room" },
        h("span", { class: "dlc-ladder-value", text: row.value }),
        h("span", { class: "dlc-ladder-fill", style: { height: isTimed ? percent(row.share) : "0" } })),
      h("span", { class: "dlc-ladder-title", text: row.title })));
  }

  go(id) {
    this.app.send("jump", { id });
  }

  home() {
    return this.bars.querySelector(".dlc-current") ?? this.bars.querySelector("button");
  }
}

/** A picture with states: a click on a mark goes there. */
export class StatesDrawer {
  constructor({ scene, actions }, app) {
    const figure = drawScene(scene, (id) => app.send("jump", { id }));
    const buttons = actions.map(({ op, text }) => button(op, text, text, () => app.send(op)));
    this.root = h("div", { class: "dlc-states-picture" }, // above the figure: below, a low pane hides them
      buttons.length ? h("div", { class: "dlc-controls" }, ...buttons) : null, figure);
  }

  /** Its marks are states, not loops. */
  mark() {}
}
