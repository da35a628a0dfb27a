/*
 * What may be done next: every move of the chosen loop; the refused ones say why, and what instead.
 *
 * While a move has the pointer or the focus, Python is asked what it would do (`preview`); what came
 * too late for it is dropped.
 */

import { controlsOf, named } from "./controls.js";
import { focusable, h } from "./dom.js";
import { conflictPicture } from "./dependences.js";
import { ghostNest, metricList, nearestButton, reasons, showChange } from "./preview.js";

const WAIT_MS = 80;
const NAMES = { compute_at: "compute at", cache_read: "cache read", cache_write: "cache write" };

export class MovesPane {
  constructor(app) {
    this.app = app;
    this.moves = h("div", { class: "dlc-moves" });
    this.why = focusable("div", { class: "dlc-why", role: "region", tabindex: 0,
      "aria-label": "What the move would do" });
    this.root = h("section", { class: "dlc-pane dlc-palette", "aria-label": "Moves" },
      this.moves, this.why);
    this.root.addEventListener("mouseleave", () => this.leave());
    this.root.addEventListener("focusout", (event) => {
      if (!this.root.contains(event.relatedTarget)) this.clear();
    });
    this.root.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      if (this.why.contains(document.activeElement)) this.itemButton()?.focus();
      else app.focusTree();
      this.pinned = null;
    });
  }

  draw(palette) {
    this.palette = palette;
    const groups = (items) => items.map((group) => this.group(group));
    const more = palette.left_out;
    this.moves.replaceChildren(
      h("h3", { text: palette.title }),
      ...groups(palette.loop),
      palette.loop.length && palette.stage.length ? h("h4", { text: "its stage" }) : "",
      ...groups(palette.stage),
      more ? h("p", { class: "dlc-soft", text: `${more} more kinds of move at level “all”` }) : "");
    this.clear();
  }

  home() {
    return this.moves.querySelector("input, button");
  }

  group(group) {
    return h("div", { class: "dlc-group", role: "group", "aria-label": group.name },
      h("span", { class: "dlc-group-name", text: NAMES[group.name] ?? group.name }),
      h("div", { class: "dlc-controls" }, ...group.items.map((item) => controlsOf(item, {
        look: (which, step) => this.look(which, step),
        apply: (which, step) => this.apply(which, step),
      }))));
  }

  apply(item, step) {
    if (item.status === "illegal" || item.status === "done") this.refuse(item, step);
    else this.app.send("apply", { step });
  }

  // -- attention -------------------------------------------------------------------------------

  /** Say what is known of a move, and ask for the rest. */
  look(item, step) {
    if (this.pinned && this.pinned !== item) return;
    const text = JSON.stringify(step);
    if (this.item === item && this.text === text) return;
    if (this.item !== item) this.explain(item);
    [this.item, this.text, this.wanted] = [item, text, null];
    clearTimeout(this.timer);
    this.timer = setTimeout(() => { this.wanted = this.app.ask("preview", { step }); }, WAIT_MS);
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
    clearTimeout(this.timer);
    [this.item, this.text, this.wanted, this.pinned] = [null, null, null, null];
    this.app.flag([], []);
    this.why.replaceChildren(h("p", { class: "dlc-soft",
      text: "✕ not possible here · ✓ done already · ◦ possible, but a later step must follow" }));
  }

  /** What the palette itself says of a move. */
  explain(item) {
    this.app.flag(item.keys, item.conflicts);
    this.why.replaceChildren(...reasons(item, { name: item.primitive, about: item.about }));
  }

  /** The answer to a `preview`; not drawn when the attention is elsewhere by now. */
  preview(view, reply) {
    if (!view.status || !this.wanted || reply !== this.wanted) return;
    const { item } = this;
    const hadFocus = this.why.contains(document.activeElement);
    const shown = item.status === "done" ? item : view;
    this.app.flag(item.keys, view.conflicts ?? []);
    this.why.replaceChildren(...[
      ...reasons(shown, { name: view.title ?? item.primitive, about: view.tail || item.about }),
      conflictPicture(view.conflict),
      view.tail && view.reason ? h("p", { text: view.tail }) : null,
      nearestButton(view, (args) => this.app.send("take", args)),
      metricList(view.metrics),
      item.status === "done" ? null : ghostNest(view.rows, view.title),
    ].filter((node) => node));
    showChange(this.why);
    if (hadFocus || this.pinned === item) this.why.querySelector("button")?.focus();
  }

  /** The button of the move that has the attention. */
  itemButton() {
    return [...this.moves.querySelectorAll("[data-key]")]
      .find((node) => node.dataset.key === this.item?.key);
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
