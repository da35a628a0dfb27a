/*
 * The states of the schedule as a graph of versions.
 */

import { focusable, h, roving, svg } from "./dom.js";

const LANE = 16;
const ROW = 24;

export class HistoryPane {
  constructor(app) {
    this.app = app;
    this.states = h("div", { class: "dlc-states", role: "listbox", "aria-label": "History" });
    this.root = h("section", { class: "dlc-pane dlc-history", "aria-label": "History" },
      h("h3", { text: "History" }), this.states);
    roving(this.states, {
      choose: (item, key) => {
        if (key === "Enter" || key === " ") app.send("jump", { id: item.dataset.key });
      },
    });
  }

  draw(history) {
    const width = history.lanes * LANE + 8;
    const rows = history.rows.map((row) => this.row(row, width));
    this.states.replaceChildren(this.graph(history, width), ...rows);
    const here = rows.find((row) => row.classList.contains("dlc-current"));
    requestAnimationFrame(() => {
      this.states.scrollTop = here.offsetTop - this.states.clientHeight / 2;
    });
  }

  graph(history, width) {
    const at = new Map(history.rows.map((row, n) => [row.id, n]));
    const x = (row) => row.lane * LANE + 10;
    const y = (n) => n * ROW + ROW / 2;
    const paths = history.rows.filter((row) => row.parent).map((row) => {
      const n = at.get(row.id), m = at.get(row.parent), parent = history.rows[m];
      const d = `M${x(parent)} ${y(m)}` + (row.lane === parent.lane ? "" : `L${x(parent)} ${y(n) - 9}`
        + `Q${x(parent)} ${y(n)} ${x(parent) + 9} ${y(n)}`) + `L${x(row)} ${y(n)}`;
      return svg("path", { d, class: row.is_on_path ? "dlc-on-path" : "" });
    });
    const dots = history.rows.map((row, n) => svg("circle", {
      cx: x(row), cy: y(n), r: row.is_here ? 5.5 : 4,
      class: row.is_here ? "dlc-here" : row.is_on_path ? "dlc-on-path" : "" }));
    return svg("svg", { width, height: history.rows.length * ROW, "aria-hidden": "true" },
      ...paths, ...dots);
  }

  row(row, width) {
    return focusable("div", {
      class: `dlc-state${row.is_here ? " dlc-current" : ""}`, role: "option",
      tabindex: row.is_here ? 0 : -1, "data-item": true, "data-key": row.id,
      "data-name": row.step, "aria-selected": String(row.is_here), "aria-label": row.label,
      title: row.step, style: { height: `${ROW}px`, paddingLeft: `${width + 2}px` },
      on: { click: () => this.app.send("jump", { id: row.id }) },
    }, h("span", { class: "dlc-clip", text: row.step }),
    h("span", { class: "dlc-note", text: Object.values(row.notes).join(" · ") }));
  }
}
