/*
 * The threads of a block in one phase: Python lays the picture out and is asked for another phase,
 * buffer or block; which thread reaches which elements is looked up on the page.
 */

import { button, focusable, h, table } from "./dom.js";
import { drawScene, markScene } from "./scene.js";

export class BlockDrawer {
  constructor(model, app) {
    this.model = model;
    this.app = app;
    if (model.is_pending) {
      this.root = h("p", { class: "dlc-soft", text: "The block is being simulated …" });
      return;
    }
    this.words = h("p", { class: "dlc-summary", "aria-live": "polite",
      text: "Click on a thread to see its elements, or on an element to see its threads." });
    this.figure = drawScene(model.scene, (key) => this.choose(key));
    // The picture comes first: a pane shows little more than it.
    const frame = this.figure.querySelector(".dlc-scroll");
    this.figure.prepend(frame);
    frame.after(...[this.costs(), this.words].filter(Boolean));
    this.root = h("div", { class: "dlc-figure" }, this.controls(), this.figure);
  }

  /** What the accesses cost that the picture shows. */
  costs() {
    const { title, table: counted, note } = this.model.costs;
    if (!title && !note) return null;
    return h("div", { class: "dlc-costs", role: "group", "aria-label": "Counters" },
      title ? h("p", { class: "dlc-soft", text: title }) : null,
      counted.rows.length ? table(counted) : null,
      h("p", { class: "dlc-soft", text: note }));
  }

  controls() {
    const { phases, buffers, blocks, threads, phase, buffer } = this.model;
    const show = (args) => this.app.send("block", args);
    const list = (key, label, items, chosen, pick) => h("label", {}, `${label} `,
      focusable("select", { "data-key": key, "aria-label": label,
        on: { change: ({ target }) => {
          const { value } = target;
          target.value = chosen; // what is drawn, until the answer is
          pick(value);
        } } },
      ...items.map(({ key: value, text }) =>
        h("option", { value, text, selected: value === chosen }))));
    const number = ({ tag, count, at }) => h("label", {}, `${tag} `,
      focusable("input", { type: "number", min: 0, max: count - 1, value: at, "data-key": tag,
        "aria-label": tag,
        on: { change: (event) => show({ block: { tag, at: Number(event.target.value) } }) } }));
    return h("div", { class: "dlc-controls", role: "group", "aria-label": "What is shown" },
      button("phase before", "◀", "The phase before", () => show({ phase: phase - 1 }), phase === 0),
      list("phase", "Phase", phases, String(phase), (value) => show({ phase: Number(value) })),
      button("phase behind", "▶", "The next phase", () => show({ phase: phase + 1 }),
        phase === phases.length - 1),
      buffers.length
        ? list("buffer", "Buffer", buffers, buffer, (value) => show({ buffer: value })) : null,
      threads.length ? this.slider() : null,
      ...blocks.filter(({ count }) => count > 1).map(number));
  }

  /** Goes through the threads by the keyboard; says what each touches. */
  slider() {
    this.range = h("input", { type: "range", class: "dlc-scrub", min: 0,
      max: this.model.threads.length - 1, value: 0, "data-key": "thread", "aria-label": "Thread",
      on: { input: () => this.choose(`t${this.range.value}`) } });
    return h("label", {}, "Thread ", this.range);
  }

  choose(key) {
    if (key.startsWith("phase ")) {
      this.app.send("block", { phase: Number(key.slice(6)) });
      return;
    }
    this.figure.classList.add("dlc-marking");
    markScene(this.figure, key);
    const thread = this.model.threads.find((each) => each.key === key);
    const mark = [...this.figure.querySelectorAll(".dlc-link")].find(({ keys }) => keys[0] === key);
    this.words.textContent = thread?.text ?? mark?.querySelector("title").textContent ?? "";
    if (!thread || !this.range) return;
    this.range.value = key.slice(1);
    this.range.setAttribute("aria-valuetext", thread.text);
  }

  /** Loops have no marks of their own in this picture. */
  mark() {}
}
