/*
 * What may be done next: every move of the chosen loop; the refused ones say why, and what instead.
 *
 * While a move has the pointer or the focus, a box beside it says what the palette knows of it, and
 * Python is asked what it would do (`preview`); an answer that comes too late for it is dropped.
 */

import { controlsOf, named } from "./controls.js";
import { conflictPicture } from "./dependences.js";
import { h } from "./dom.js";
import { Popover } from "./popover.js";
import { ghostNest, metricTable, nearestButton, reasons, showChange } from "./preview.js";

const WAIT_MS = 80;
/** How long the box stays when the pointer has left, and while the pointer is on its way into it. */
const STAY_MS = 300;
/** After a move got the focus, the page may scroll: what then comes under the pointer was not meant. */
const SETTLE_MS = 200;
const NAMES = { compute_at: "compute at", cache_read: "cache read", cache_write: "cache write" };
const LEGEND = { illegal: "✕ not possible", done: "✓ changes nothing",
  pending: "◦ possible, but a later step must follow" };

export class MovesPane {
  constructor(app) {
    this.app = app;
    this.moves = h("div", { class: "dlc-moves" });
    this.moves.addEventListener("scroll", () => { this.isScrolled = this.moves.scrollTop > 0; });
    this.root = h("section", { class: "dlc-pane dlc-palette", "aria-label": "Moves" }, this.moves);
    this.popover = new Popover(this.root, "What the move would do");
    this.why = this.popover.root;
    this.why.classList.add("dlc-why");
    this.why.addEventListener("mouseenter", () => clearTimeout(this.turning));
    this.root.addEventListener("mouseenter", () => clearTimeout(this.leaving));
    this.root.addEventListener("mouseleave", () => {
      clearTimeout(this.turning);
      this.leaving = setTimeout(() => this.leave(), STAY_MS);
    });
    this.root.addEventListener("mousemove", (event) => {
      if (!event.movementX && !event.movementY) return; // the page moved, not the pointer
      this.path = [this.path?.[1], { x: event.clientX, y: event.clientY }];
    });
    this.root.addEventListener("focusin", () => { this.focusedAt = performance.now(); });
    this.root.addEventListener("focusout", (event) => {
      if (!this.root.contains(event.relatedTarget)) this.clear();
    });
    this.root.addEventListener("keydown", (event) => this.key(event));
  }

  draw(palette) {
    const isOther = palette.chosen !== this.palette?.chosen;
    this.palette = palette;
    const groups = (items) => items.map((group) => this.group(group));
    this.moves.replaceChildren(
      h("h3", { text: palette.title }),
      ...groups(palette.loop),
      palette.loop.length && palette.stage.length ? h("h4", { text: "its stage" }) : "",
      ...groups(palette.stage),
      this.legend(),
      palette.more ? h("p", { class: "dlc-soft", text: palette.more }) : "");
    if (isOther && this.isScrolled) this.moves.scrollTop = 0; // which computes the layout
    this.clear();
  }

  /** What the signs on the buttons mean: those that there are. */
  legend() {
    const items = [...this.palette.loop, ...this.palette.stage].flatMap((group) => group.items);
    const parts = Object.entries(LEGEND).filter(([status]) => items.some((i) => i.status === status));
    return parts.length
      ? h("p", { class: "dlc-soft dlc-legend", text: parts.map(([, text]) => text).join(" · ") }) : "";
  }

  home() {
    return this.moves.querySelector("input, button");
  }

  group(group) {
    return h("div", { class: "dlc-group", role: "group", "aria-label": group.name },
      h("span", { class: "dlc-group-name", text: NAMES[group.name] ?? group.name }),
      h("div", { class: "dlc-controls" }, ...group.items.map((item) => controlsOf(item, {
        look: (which, step, isPointed) => (isPointed ? this.point(which, step) : this.look(which, step)),
        apply: (which, step) => this.apply(which, step),
      }))));
  }

  apply(item, step) {
    if (item.status === "illegal" || item.status === "done") this.refuse(item, step);
    else this.app.send("apply", { step });
  }

  /** Escape closes the box, and then leads back to the tree; Alt+↓ leads into the box. */
  key(event) {
    const isInside = this.why.contains(document.activeElement);
    if (event.key === "ArrowDown" && event.altKey && this.popover.isOpen && !isInside) {
      event.preventDefault();
      event.stopPropagation();
      (this.why.querySelector("button, [tabindex='0']") ?? this.why).focus();
    }
    if (event.key !== "Escape") return;
    event.stopPropagation();
    this.pinned = null;
    if (isInside) this.buttonOf(this.item)?.focus();
    if (this.popover.isOpen) this.popover.hide();
    else this.app.focusTree();
  }

  // -- attention -------------------------------------------------------------------------------

  /** The pointer is on a move; while it is on its way into the box, it only passes this one. */
  point(item, step) {
    clearTimeout(this.turning);
    const isSettling = performance.now() - (this.focusedAt ?? -SETTLE_MS) < SETTLE_MS;
    const isPassing = this.item && this.item !== item && this.popover.isAhead(...(this.path ?? []));
    if (isSettling) this.later(SETTLE_MS, item, step, () => false);
    else if (isPassing) this.later(STAY_MS, item, step, () => this.popover.isAhead(...this.path));
    else this.look(item, step);
  }

  /** Look at a move if the pointer moves on it, and stays; while `isPassing`, it may go on. */
  later(wait, item, step, isPassing) {
    const last = this.path?.[1];
    this.turning = setTimeout(() => {
      const control = this.buttonOf(item)?.closest(".dlc-numbers, .dlc-plain");
      const moved = this.path?.[1] !== last;
      if (!control?.matches(":hover")) return;
      if (moved && isPassing()) this.later(wait, item, step, isPassing);
      else if (moved || wait === STAY_MS) this.look(item, step);
    }, wait);
  }

  /** Say what is known of a move, and ask for the rest. */
  look(item, step) {
    if (this.app.panes.predict?.isAsking) return;
    if (this.pinned && this.pinned !== item) return;
    const text = JSON.stringify(step);
    if (this.item === item && this.text === text) {
      this.open();
      return;
    }
    const isOther = this.item !== item;
    [this.item, this.text, this.wanted] = [item, text, null];
    if (isOther) this.explain(item);
    else this.open();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => { this.wanted = this.app.ask("preview", { step }); }, WAIT_MS);
  }

  /** Show the box beside the controls of the move. */
  open() {
    const control = this.buttonOf(this.item);
    if (control) this.popover.show(control.closest(".dlc-numbers") ?? control, control);
  }

  /** The pointer has gone: back to the move with the focus, if there is one. */
  leave() {
    const focused = document.activeElement?.closest(".dlc-numbers, .dlc-plain");
    this.pinned = null;
    if (this.why.contains(document.activeElement)) return;
    if (focused && this.root.contains(focused)) focused.dispatchEvent(new Event("focusin"));
    else this.clear();
  }

  clear() {
    for (const timer of [this.timer, this.turning, this.leaving]) clearTimeout(timer);
    [this.item, this.text, this.wanted, this.pinned] = [null, null, null, null];
    this.app.flag([], []);
    this.popover.hide();
    this.why.replaceChildren();
  }

  /** What the palette itself says of a move. */
  explain(item) {
    this.app.flag(item.keys, item.conflicts);
    this.why.replaceChildren(...reasons(item, { name: named(item), about: item.about }));
    this.open();
  }

  /** The answer to a `preview`; not drawn when the attention is elsewhere by now. */
  preview(view, reply) {
    if (!view.status || !this.wanted || reply !== this.wanted) return;
    const { item } = this;
    const hadFocus = this.why.contains(document.activeElement);
    const shown = item.status === "done" ? item : view;
    this.app.flag(item.keys, view.conflicts ?? []);
    this.why.replaceChildren(...[
      ...reasons(shown, { name: view.title ?? named(item), about: view.tail || item.about }),
      conflictPicture(view.conflict),
      view.tail && view.reason ? h("p", { text: view.tail }) : null,
      nearestButton(view, (args) => this.app.send("take", args)),
      ...(shown.status === "done" ? [] : [
        ...metricTable(view), ghostNest(view.rows, view.title)]),
    ].filter((node) => node));
    this.popover.place();
    showChange(this.why);
    if (hadFocus || this.pinned === item) this.why.querySelector("button")?.focus();
  }

  buttonOf(item) {
    return [...this.moves.querySelectorAll("[data-key]")]
      .find((node) => node.dataset.key === item?.key);
  }

  /** A refused move was wanted: say why, and go to what is possible instead. */
  refuse(item, step) {
    this.pinned = null;
    this.look(item, step);
    this.pinned = item;
    this.why.querySelector("button")?.focus();
    this.app.say({ text: `${named(item)}: ${item.reason}`,
      tone: item.status === "illegal" ? "error" : "info",
      details: item.hint ? [["hint", item.hint]] : [] });
  }
}
