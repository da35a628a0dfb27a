/*
 * The states of the schedule as a graph of versions: go to one, name it, note on it, compare two.
 */

import { button, focusable, h, roving, svg } from "./dom.js";

const LANE = 14, HALF = 13, BEND = 9; // px: between lanes, from the top of a row to its dot, of a corner
const MARKS = { verified: "✓", measured: "◷", wrong: "✕" };

export class HistoryPane {
  constructor(app) {
    this.app = app;
    this.states = h("div", { class: "dlc-states", role: "treegrid", "aria-label": "States" });
    this.editor = h("form", { class: "dlc-describe", hidden: true,
      "aria-label": "Name and note of a state" });
    this.root = h("section", { class: "dlc-pane dlc-history", "aria-label": "History" },
      this.states, this.editor);
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
    new ResizeObserver(() => {
      for (const row of [this.here, this.seen]) this.scrollTo(row);
    }).observe(this.states);
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
    this.count = history.rows.length;
    this.root.style.setProperty("--dlc-rows", this.count);
    // Measured and predicted times have bars of their own: they are never compared.
    const longest = Math.max(...history.rows.map(({ seconds }) => seconds ?? 0));
    this.longestPredicted = Math.max(...history.rows.map(({ predicted }) => predicted?.seconds ?? 0));
    const edges = edgesOf(history.rows);
    const rows = history.rows.map((row, n) => this.row(row, this.lanes(history, edges, n), longest));
    this.states.replaceChildren(...rows);
    this.here = rows.find((row) => row.classList.contains("dlc-current"));
    this.reach(this.here);
    this.isFresh = true; // the current state is seen as a whole, whatever loop is chosen
    requestAnimationFrame(() => {
      this.isFresh = false;
      this.scrollTo(this.here);
    });
  }

  /** Mark the state whose step made the chosen loop. */
  mark(key) {
    for (const old of this.states.querySelectorAll(".dlc-made-mark")) old.remove();
    const made = this.app.madeBy(key);
    const row = made && [...this.states.querySelectorAll(".dlc-state")].find((each) => each.dataset.key === made);
    if (!row) return;
    row.querySelector(".dlc-state-line").append(h("span", { class: "dlc-made-mark", role: "gridcell",
      text: `● ${key.slice(key.lastIndexOf("/") + 1)}`, "aria-label": `made ${key}`, title: `This step made ${key}` }));
    if (key !== this.marked && !this.isFresh) requestAnimationFrame(() => this.scrollTo(row));
    this.marked = key;
  }

  /** Let a row be seen, below whole rows: the list is made so long that any row can be the first. */
  scrollTo(row) {
    this.seen = row;
    if (!row?.isConnected || !this.states.clientHeight) return;
    const { states } = this, { clientHeight } = states, rows = [...states.children];
    const low = placeOf(row) + row.offsetHeight - clientHeight;
    const wanted = Math.min(Math.max(states.scrollTop, low), placeOf(row));
    const first = rows.find((each) => placeOf(each) >= wanted);
    states.style.setProperty("--dlc-rest", `${Math.max(0, placeOf(first) + clientHeight - heightOf(rows))}px`);
    states.scrollTop = placeOf(first);
  }

  home() {
    return this.states.querySelector(".dlc-current");
  }

  /**
   * The lanes beside a row: lines that pass it, the line that comes to it, and those that leave. A
   * line goes down in its child's lane: in the parent's, it would seem to come from the first child.
   */
  lanes({ rows, lanes }, edges, n) {
    const x = (row) => row.lane * LANE + 8;
    const own = x(rows[n]);
    const lines = edges.filter(({ from, to }) => from <= n && n <= to).flatMap(({ from, to }) => {
      const at = x(rows[to]), isOn = rows[to].is_on_path ? "dlc-on-path" : "";
      const down = (y1, y2) => svg("line", { class: isOn, x1: at, x2: at, y1, y2 });
      if (from !== n) return [down(0, to === n ? HALF : "100%")];
      if (at === own) return [down(HALF, "100%")];
      return [svg("path", { class: isOn, d: `M${own} ${HALF}H${at - BEND}Q${at} ${HALF} ${at} ${HALF + BEND}` }),
        down(HALF + BEND, "100%")];
    });
    const { is_here: isHere, is_on_path: isOnPath } = rows[n];
    return h("span", { class: "dlc-lanes", "aria-hidden": "true", style: { width: `${lanes * LANE + 6}px` } },
      svg("svg", {}, ...lines, svg("circle", { cx: own, cy: HALF, r: isHere ? 5.5 : 4,
        class: isHere ? "dlc-here" : isOnPath ? "dlc-on-path" : "" })));
  }

  row(row, lanes, longest) {
    const { a, b } = this.history.compared;
    const buttons = h("span", { class: "dlc-state-buttons", role: "gridcell" },
      this.side("a", row, a === row.id), this.side("b", row, b === row.id),
      button(`name ${row.id}`, "✎", `Name and note: ${row.step}`, () => this.edit(row.id), false,
        { class: "dlc-chip", tabindex: -1 }));
    const marks = Object.entries(row.notes).map(([kind, text]) =>
      h("span", { class: "dlc-known-mark", title: `${kind}: ${text}`,
        text: `${MARKS[kind] ?? ""} ${kind === "measured" ? text : kind}` }));
    return focusable("div", {
      class: `dlc-state${row.is_here ? " dlc-current" : ""}${row.is_on_path ? " dlc-on-path" : ""}`,
      role: "row", "aria-level": row.lane + 1, tabindex: row.is_here ? 0 : -1, "data-item": true,
      "data-key": row.id, "data-name": row.name || row.step, "aria-selected": String(row.is_here),
      "aria-label": row.label, title: [row.step, ...Object.values(row.notes), row.note].filter(Boolean).join("\n"),
      on: { click: (event) => {
        if (!event.target.closest("button")) this.app.send("jump", { id: row.id });
      } },
    }, lanes,
    h("div", { class: "dlc-state-words" },
      h("div", { class: "dlc-state-line" },
        h("span", { class: "dlc-state-step", role: "gridcell" },
          row.name ? h("b", { class: "dlc-state-name", text: row.name }) : null,
          h("span", { text: row.is_here ? row.step : row.short })),
        row.is_here ? null : buttons,
        row.seconds && !row.is_here ? h("span", { class: "dlc-time-bar", "aria-hidden": "true" },
          h("span", { style: { width: `${(100 * row.seconds) / longest}%` } })) : null,
        row.time ? h("span", { class: "dlc-time", role: "gridcell", text: row.time }) : null,
        row.predicted && !row.time ? this.predicted(row) : null),
      h("div", { class: "dlc-state-more" },
        row.is_here ? null : h("span", { text: row.step }),
        h("span", { class: "dlc-note", role: "gridcell" },
          ...(marks.length ? marks
            : [row.note || row.predicted ? h("span", { text: "not measured" }) : "not measured"]),
          row.predicted ? h("span", { text: row.predicted.label }) : null,
          row.predicted ? parts(row.predicted, 1) : null,
          row.note ? h("i", { text: row.note }) : null),
        row.is_here ? buttons : null)));
  }

  /** The predicted time of a state: a bar of the parts that add up to it, and the time. */
  predicted({ predicted, is_here: isHere }) {
    const whole = predicted.seconds / this.longestPredicted;
    return h("span", { class: "dlc-predicted", role: "gridcell", title: predicted.label },
      isHere ? null : parts(predicted, whole), h("span", { class: "dlc-time", text: `≈ ${predicted.time}` }));
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

/** A bar of the parts of a predicted time; `whole` is how much of it they fill together. */
function parts({ parts: all }, whole) {
  return h("span", { class: "dlc-time-bar dlc-predicted-bar", "aria-hidden": "true" },
    ...all.map(({ kind, name, share, text }) => h("span", { class: `dlc-part-${kind}`,
      title: `${name}: ${text}`, style: { width: `${100 * whole * share}%` } })));
}

/** From which row to which a line goes, by their numbers. */
function edgesOf(rows) {
  const at = new Map(rows.map(({ id }, n) => [id, n]));
  return rows.flatMap(({ parent }, to) => (parent ? [{ from: at.get(parent), to }] : []));
}

/** How far below the first row a row is. */
const placeOf = (row) => row.offsetTop - row.parentNode.firstChild.offsetTop;

const heightOf = (rows) => placeOf(rows.at(-1)) + rows.at(-1).offsetHeight;
