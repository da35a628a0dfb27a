/*
 * Columns of panes: their titles, which collapse them, the splitters between them, and how many
 * columns there is room for. What a user sets is remembered for each width.
 */

import { focusable, h } from "./dom.js";
import { LEAST, MOST, Splitter } from "./splitters.js";

/** The panes of each column, and the one that takes the room that the others leave. */
const COLUMNS = {
  left: { panes: ["tree", "moves"], fill: "moves" },
  centre: { panes: ["picture", "ladder"], fill: "picture" },
  right: { panes: ["text", "history", "advice"], fill: "text" },
};
const OTHERS = "right";
const WIDTHS = [[1100, "wide"], [700, "medium"], [0, "narrow"]];
const TITLES = {
  tree: "Loop nest", moves: "Moves", picture: "Picture", ladder: "Ladder", text: "Program",
  history: "History", advice: "Advice",
};
const titleOf = (name) => TITLES[name] ?? name[0].toUpperCase() + name.slice(1);

/** A title above a pane on its own; beside it, what the pane puts there (`headline`). */
export function plainHead(pane, name) {
  if (pane.headline) pane.root.prepend(h("div", { class: "dlc-pane-head" }, pane.headline));
  else if (name !== "moves") {
    pane.root.prepend(h("div", { class: "dlc-pane-head" },
      h("h3", { class: "dlc-pane-title", text: titleOf(name) })));
  }
}

export class Columns {
  /** `panes` are those of the grid by name; `opened` is called when one is expanded. */
  constructor(root, grid, panes, { memory, opened }) {
    Object.assign(this, { root, grid, panes, memory, opened });
    this.width = "wide";
    this.titles = {};
    this.splitters = [];
    const names = Object.keys(panes);
    const known = Object.values(COLUMNS).flatMap((column) => column.panes);
    this.columns = Object.fromEntries(Object.entries(COLUMNS).map(([name, { panes: own, fill }]) => {
      const others = name === OTHERS ? names.filter((each) => !known.includes(each)) : [];
      return [name, { fill, names: [...own.filter((each) => names.includes(each)), ...others],
        root: h("div", { class: `dlc-column dlc-${name}` }) }];
    }));
    for (const name of names) this.addTitle(name);
    for (const [name, column] of Object.entries(this.columns)) this.fillColumn(name, column);
    this.between("left", "Width of the loop nest", this.columns.left.root, false);
    this.between("right", "Width of the program", this.columns.right.root, true);
    root.classList.add("dlc-columns");
    this.setWidth("wide");
    new ResizeObserver(([{ contentRect }]) =>
      this.setWidth(WIDTHS.find(([least]) => contentRect.width >= least)[1])).observe(root);
  }

  // -- parts -----------------------------------------------------------------------------------

  addTitle(name) {
    const pane = this.panes[name], title = titleOf(name);
    const words = h("span", { class: "dlc-pane-name", text: title });
    const button = focusable("button", { type: "button", "data-key": `pane ${name}`, "aria-label": title,
      "aria-expanded": "true", on: { click: () => this.collapse(name, !this.isCollapsed(name)) } }, words);
    this.titles[name] = { button, words };
    pane.root.dataset.pane = name;
    pane.root.prepend(h("div", { class: "dlc-pane-head" },
      h("h3", { class: "dlc-pane-title" }, button), pane.headline));
  }

  /** Say in the title of a pane how much is in it. */
  count(name, count) {
    const { button, words } = this.titles[name] ?? {};
    if (!words || count === undefined) return;
    words.textContent = `${titleOf(name)} (${count})`;
    button.setAttribute("aria-label", words.textContent);
  }

  /** Put the panes of a column into it, with a splitter beside each but the one that fills. */
  fillColumn(name, { names, fill, root }) {
    const at = names.indexOf(fill);
    names.forEach((each, n) => {
      const isAfter = n > at;
      const line = n === at || at < 0 ? null : this.splitter(each, {
        label: `Height of the pane ${titleOf(each)}`, isBetweenColumns: false, isAfter,
        node: () => this.panes[each].root, room: () => root,
      });
      root.append(...[isAfter && line?.root, this.panes[each].root, !isAfter && line?.root].filter(Boolean));
    });
    this.grid.append(root);
  }

  between(name, label, node, isAfter) {
    const line = this.splitter(name, { label, isBetweenColumns: true, isAfter, node: () => node,
      room: () => this.grid });
    if (isAfter) node.before(line.root);
    else node.after(line.root);
  }

  splitter(name, options) {
    const line = new Splitter({ key: `splitter ${name}`, ...options,
      resize: (size, isDone) => {
        this.setSize(name, size);
        if (isDone) this.memory.set(`${this.width} ${name}`, size);
      } });
    line.name = name;
    this.splitters.push(line);
    return line;
  }

  // -- what is shown ---------------------------------------------------------------------------

  isVisible(name) {
    return name in this.panes && !this.panes[name].root.hidden;
  }

  columnOf(name) {
    return Object.keys(this.columns).find((column) => this.columns[column].names.includes(name));
  }

  hasColumn(name) {
    return this.columns[name].names.some((each) => this.isVisible(each));
  }

  /** Whether the panes of a column are as high as their contents: it stands beneath the others. */
  isBeneath(column) {
    return this.width === "narrow"
      || (this.width === "medium" && column === "right" && this.hasColumn("centre"));
  }

  isCollapsed(name) {
    return this.memory.get(`${this.width} ${name} collapsed`, "boolean") ?? this.isCollapsedAtFirst(name);
  }

  isCollapsedAtFirst(name) {
    if (this.columnOf(name) !== "right") return false;
    if (this.width === "medium" && this.isBeneath("right")) return true;
    return name === "advice" && this.isVisible("text");
  }

  collapse(name, isCollapsed) {
    this.memory.set(`${this.width} ${name} collapsed`, isCollapsed);
    this.arrange();
    if (!isCollapsed) this.opened();
  }

  /** Let a pane be seen that a key leads to. */
  open(name) {
    if (this.isVisible(name) && this.isCollapsed(name)) this.collapse(name, false);
  }

  setWidth(width) {
    if (this.root.dataset.width === width) return;
    this.width = this.root.dataset.width = width;
    this.arrange();
  }

  setSize(name, size) {
    if (name in this.columns) {
      if (size === null) this.grid.style.removeProperty(`--dlc-${name}`);
      else this.grid.style.setProperty(`--dlc-${name}`, `${size}%`);
      return;
    }
    const { root } = this.panes[name];
    root.classList.toggle("dlc-sized", size !== null);
    root.style.setProperty("--dlc-size", size === null ? "auto" : `${size}%`);
  }

  /** Bring everything into the order that the width, the level and the user ask for. */
  arrange() {
    const there = Object.keys(this.columns).filter((name) => this.hasColumn(name));
    this.grid.dataset.columns = there.join(" ");
    for (const name of Object.keys(this.columns)) this.arrangeColumn(name);
    for (const line of this.splitters) {
      const size = this.memory.get(`${this.width} ${line.name}`, "number");
      line.root.hidden = !this.isMovable(line);
      const isSet = size !== null && !line.root.hidden;
      this.setSize(line.name, isSet ? Math.min(Math.max(size, LEAST), MOST) : null);
    }
  }

  arrangeColumn(name) {
    const { names, fill, root } = this.columns[name];
    root.hidden = !this.hasColumn(name);
    root.classList.toggle("dlc-beneath", this.isBeneath(name));
    const open = [];
    for (const each of names.filter((one) => this.isVisible(one))) {
      const isCollapsed = this.isCollapsed(each);
      this.panes[each].root.classList.toggle("dlc-collapsed", isCollapsed);
      this.titles[each].button.setAttribute("aria-expanded", String(!isCollapsed));
      if (!isCollapsed) open.push(each);
    }
    const filling = open.includes(fill) ? fill : open[0];
    for (const each of names) this.panes[each].root.classList.toggle("dlc-fill", each === filling);
    this.columns[name].filling = filling;
    this.columns[name].open = open;
  }

  isMovable({ name }) {
    if (this.width === "narrow") return false;
    if (name === "left") return this.grid.dataset.columns.startsWith("left ");
    if (name === "right") return this.width === "wide" && this.grid.dataset.columns === "left centre right";
    const column = this.columnOf(name), { fill, filling, open } = this.columns[column];
    return filling === fill && open.includes(name) && !this.isBeneath(column);
  }
}
