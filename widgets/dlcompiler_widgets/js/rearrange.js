/*
 * Rows of the loop tree put at the place of others: by dragging, and by Alt with the arrows.
 *
 * While a row is dragged, Python is asked about each row that it comes over; that row says whether
 * it may be dropped there, and why not, before it is dropped.
 */

import { h } from "./dom.js";

const FAR_ENOUGH = 5;

export class Rearranging {
  constructor(tree, app) {
    this.tree = tree;
    this.app = app;
    this.note = h("div", { class: "dlc-drop-note", hidden: true });
    tree.items.addEventListener("pointerdown", (event) => this.press(event));
    tree.items.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const row = event.target.closest?.("[data-item]");
    if (event.key === "Escape" && this.drag) this.end();
    if (!by || !event.altKey || !row) return;
    event.preventDefault();
    event.stopPropagation();
    this.app.choose(row.dataset.key);
    this.app.send("move", { key: row.dataset.key, by });
  }

  press(event) {
    const row = event.target.closest("[data-item]");
    if (!row || event.button !== 0) return;
    this.drag = { row, key: row.dataset.key, x: event.clientX, y: event.clientY, stop: new AbortController() };
    const { signal } = this.drag.stop;
    const view = row.ownerDocument;
    view.addEventListener("pointermove", (move) => this.move(move), { signal });
    view.addEventListener("pointerup", () => this.drop(), { signal });
    view.addEventListener("pointercancel", () => this.end(), { signal });
    view.addEventListener("keydown", (pressed) => {
      if (pressed.key === "Escape") this.end();
    }, { signal, capture: true });
  }

  move(event) {
    const { drag } = this;
    if (!drag.isMoving) {
      if (Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < FAR_ENOUGH) return;
      drag.isMoving = true;
      drag.row.classList.add("dlc-dragged");
    }
    event.preventDefault();
    const root = this.tree.items.getRootNode();
    const over = root.elementFromPoint(event.clientX, event.clientY)?.closest("[data-item]");
    const target = over && this.tree.items.contains(over) && over !== drag.row ? over : null;
    if (target === drag.target) return;
    this.show(null);
    drag.target = target;
    drag.answer = null;
    drag.wanted = target
      ? this.app.ask("preview", { key: drag.key, onto: target.dataset.key }) : null;
  }

  /** The answer about the row under the pointer. */
  preview(view, reply) {
    if (!view.status || !this.drag?.wanted || reply !== this.drag.wanted) return;
    this.drag.answer = view;
    this.show(view);
  }

  show(view) {
    const { target } = this.drag;
    target?.classList.remove("dlc-drop-legal", "dlc-drop-illegal");
    this.note.hidden = !view;
    if (!view || !target) return;
    const isLegal = view.status !== "illegal";
    target.classList.add(isLegal ? "dlc-drop-legal" : "dlc-drop-illegal");
    this.note.textContent = isLegal
      ? `✓ drop: ${view.title}${view.reason ? `; pending: ${view.reason}` : ""}`
      : `✕ ${view.reason}${view.hint ? ` — ${view.hint}` : ""}`;
    this.note.style.top = `${target.offsetTop + target.offsetHeight}px`;
    this.tree.items.append(this.note);
  }

  drop() {
    const { isMoving, key, target } = this.drag;
    this.end();
    if (isMoving && target) this.app.send("move", { key, onto: target.dataset.key });
  }

  end() {
    if (!this.drag) return;
    this.show(null);
    this.note.remove();
    this.drag.row.classList.remove("dlc-dragged");
    this.drag.stop.abort();
    this.drag = null;
  }
}
