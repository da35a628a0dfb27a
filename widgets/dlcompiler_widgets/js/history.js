/*
 * The states of the schedule as a graph of versions: go to one, name it, note on it, compare two.
 */

import { button, focusable, h, roving, svg } from "./dom.js";

const LANE = 16;
const ROW = 28;
const MARKS = { verified: "✓", measured: "◷", wrong: "✕" };

export class HistoryPane {
  constructor(app) {
    this.app = app;
    this.states = h("div", { class: "dlc-states", role: "treegrid", "aria-label": "States" });
    this.editor = h("form", { class: "dlc-describe", hidden: true,
      "aria-label": "Name and note of a state" });
    this.root = h("section", { class: "dlc-pane dlc-history", "aria-label": "History" },
      h("h3", { text: "History" }), this.states, this.editor);
    roving(this.states, {
      choose: (item, key) => {
        if (key === "Enter" || key === " ") app.send("jump", { id: item.dataset.key });
      },
      keys: {
        a: (item) => this.compare("a", item.dataset.key),
        b: (item) => this.compare("b", item.dataset.key),
        n: (item) => this.edit(item.dataset.key),
      },
    });
    this.states.addEventListener("focusin", (event) => this.reach(event.target.closest(".dlc-state")));
    this.editor.addEventListener("submit", (event) => {
      event.preventDefault();
      this.describe();
    });
    this.editor.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.closeEditor();
      event.stopPropagation();
    });
  }

  draw(history) {
    this.history = history;
    const width = history.lanes * LANE + 8;
    const rows = history.rows.map((row) => this.row(row, width));
    this.states.replaceChildren(this.graph(history, width), ...rows);
    const here = rows.find((row) => row.classList.contains("dlc-current"));
    this.reach(here);
    requestAnimationFrame(() => {
      this.states.scrollTop = here.offsetTop - this.states.clientHeight / 2;
    });
  }

  /** Mark the state whose step made the chosen loop. */
  mark(key) {
    for (const old of this.states.querySelectorAll(".dlc-made-mark")) old.remove();
    const made = this.app.madeBy(key);
    const row = made && [...this.states.querySelectorAll(".dlc-state")].find((each) => each.dataset.key === made);
    if (!row) return;
    row.querySelector(".dlc-note").prepend(
      h("span", { class: "dlc-known-mark dlc-made-mark", text: `● made ${key}` }));
    if (key !== this.marked) {
      const { scrollTop, clientHeight } = this.states;
      const below = row.offsetTop + ROW - clientHeight;
      this.states.scrollTop = Math.min(Math.max(scrollTop, below), row.offsetTop);
    }
    this.marked = key;
  }

  home() {
    return this.states.querySelector(".dlc-current");
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
    const { a, b } = this.history.compared;
    const marks = Object.entries(row.notes).map(([kind, text]) =>
      h("span", { class: "dlc-known-mark", title: `${kind}: ${text}`,
        text: `${MARKS[kind] ?? ""} ${kind === "measured" ? text : kind}` }));
    return focusable("div", {
      class: `dlc-state${row.is_here ? " dlc-current" : ""}`, role: "row", "aria-level": row.lane + 1,
      tabindex: row.is_here ? 0 : -1, "data-item": true, "data-key": row.id,
      "data-name": row.name || row.step, "aria-selected": String(row.is_here),
      "aria-label": row.label, title: row.note ? `${row.step}\n${row.note}` : row.step,
      style: { height: `${ROW}px`, paddingLeft: `${width + 2}px` },
      on: { click: (event) => {
        if (!event.target.closest("button")) this.app.send("jump", { id: row.id });
      } },
    },
    h("span", { class: "dlc-state-step dlc-clip", role: "gridcell" },
      row.name ? h("b", { class: "dlc-state-name", text: row.name }) : null,
      h("span", { text: row.step })),
    h("span", { class: "dlc-note dlc-clip", role: "gridcell" }, ...marks,
      row.note ? h("i", { text: row.note }) : null),
    h("span", { class: "dlc-state-buttons", role: "gridcell" },
      this.side("a", row, a === row.id), this.side("b", row, b === row.id),
      button(`name ${row.id}`, "✎", `Name and note: ${row.step}`, () => this.edit(row.id), false,
        { class: "dlc-chip", tabindex: -1 })));
  }

  side(side, row, isChosen) {
    const letter = side.toUpperCase();
    return button(`${side} ${row.id}`, letter,
      isChosen ? `This is ${letter} of the comparison` : `Compare: ${row.step} as ${letter}`,
      () => this.compare(side, row.id), false,
      { class: "dlc-chip", "aria-pressed": String(isChosen), tabindex: -1 });
  }

  /** Only the buttons of one row are reached by Tab. */
  reach(row) {
    if (!row) return;
    for (const each of this.states.querySelectorAll("button")) {
      each.tabIndex = row.contains(each) ? 0 : -1;
    }
  }

  compare(side, id) {
    this.app.send("compare", { [side]: id });
  }

  // -- names and notes -------------------------------------------------------------------------

  edit(id) {
    const row = this.history.rows.find((each) => each.id === id);
    this.edited = id;
    this.nameField = h("input", { type: "text", value: row.name, maxlength: 60,
      "aria-label": "Name", placeholder: "name of this branch" });
    this.noteField = h("input", { type: "text", value: row.note, maxlength: 2000,
      "aria-label": "Note", placeholder: "note" });
    this.editor.replaceChildren(
      h("span", { class: "dlc-soft dlc-clip", text: row.step }), this.nameField, this.noteField,
      focusable("button", { type: "submit", text: "Save" }),
      focusable("button", { type: "button", text: "Cancel",
        on: { click: () => this.closeEditor() } }));
    this.editor.hidden = false;
    this.noteBefore = this.noteField.value; // one line of what may have several
    this.nameField.focus();
  }

  describe() {
    const texts = { name: this.nameField.value };
    if (this.noteField.value !== this.noteBefore) texts.note = this.noteField.value;
    this.app.send("describe", { id: this.edited, ...texts });
    this.closeEditor();
  }

  closeEditor() {
    this.editor.hidden = true;
    [...this.states.querySelectorAll(".dlc-state")].find((row) => row.dataset.key === this.edited)?.focus();
  }
}
