/*
 * Which pass of the pipeline the text stands behind: a slider and a list. What a pass changed is in
 * the lines; passes that changed nothing are skipped, unless one asks for them.
 */

import { button, focusable, h, roving } from "./dom.js";

const DELAY_MS = 60;

export class PassControls {
  constructor(app) {
    this.app = app;
    this.slider = h("input", { type: "range", min: 0, step: 1, "aria-label": "Pass",
      on: { input: () => this.open(this.visible()[Number(this.slider.value)], DELAY_MS) } });
    this.title = h("strong", { class: "dlc-pass-name" });
    this.effect = h("span", { class: "dlc-soft" });
    this.about = h("div", { class: "dlc-soft" });
    this.search = h("input", { type: "search", placeholder: "find a pass",
      "aria-label": "Find a pass by name", on: { input: () => this.filter() } });
    this.skip = h("input", { type: "checkbox", checked: true, on: { change: () => this.drawSlider() } });
    this.total = h("summary", { "data-lm-suppress-shortcuts": "true" });
    this.list = h("div", { class: "dlc-pass-list", role: "listbox", "aria-label": "Passes" });
    roving(this.list, { choose: (item) => this.open(this.step(item.dataset.name)) });
    this.all = h("details", { class: "dlc-twin" }, this.total,
      h("div", { class: "dlc-pass-search" }, this.search,
        h("label", {}, this.skip, " skip unchanged")),
      this.list);
    this.root = h("div", { class: "dlc-passes", hidden: true },
      h("div", { class: "dlc-scrubber" },
        button("earlier pass", "◀", "Earlier pass", () => this.move(-1), false, { class: "dlc-chip" }),
        this.slider,
        button("later pass", "▶", "Later pass", () => this.move(1), false, { class: "dlc-chip" })),
      h("div", { class: "dlc-pass-head" }, this.title, this.effect), this.about, this.all);
  }

  draw(model) {
    this.root.hidden = !model;
    if (!model) return;
    this.steps = model.steps;
    this.current = this.steps.find(({ number }) => number === model.open);
    const { name, number, about, requires, establishes } = this.current;
    this.title.textContent = `${number} ${name}`;
    this.effect.textContent = `${this.current.effect} · ${this.current.milliseconds} ms measured`;
    const needs = requires.length ? ` Needs ${requires.join(" and ")}.` : "";
    const gives = establishes.length ? ` Gives ${establishes.join(" and ")}.` : "";
    this.about.textContent = about + needs + gives;
    this.about.title = `How to read: ${model.how_to_read}`;
    this.total.textContent =
      `All ${this.steps.length} passes · ${model.milliseconds} ms measured`;
    this.drawSlider();
    this.drawList();
  }

  drawSlider() {
    const visible = this.visible();
    this.slider.max = visible.length - 1;
    this.slider.value = visible.indexOf(this.current);
    this.slider.setAttribute("aria-valuetext", this.current.label);
  }

  /** The passes that the slider stops at: those with a change, and the open one. */
  visible() {
    return this.steps.filter((step) =>
      !this.skip.checked || !step.is_unchanged || step === this.current);
  }

  drawList() {
    const hadFocus = this.list.contains(document.activeElement);
    this.list.replaceChildren(...this.steps.map((step) => this.row(step)));
    this.filter();
    const open = this.list.querySelector('[aria-selected="true"]');
    this.list.scrollTop = open.offsetTop - this.list.clientHeight / 2;
    if (hadFocus) this.list.querySelector('[tabindex="0"]')?.focus({ preventScroll: true });
  }

  row(step) {
    const isOpen = step === this.current;
    return focusable("div", {
      class: `dlc-pass${step.is_unchanged ? " dlc-unchanged" : ""}`, role: "option",
      tabindex: isOpen ? 0 : -1, "data-item": true, "data-key": `pass ${step.name}`,
      "data-name": step.name, "aria-selected": String(isOpen), "aria-label": step.label,
      title: step.about, on: { click: () => this.open(step) },
    }, h("span", { text: `${step.number} ${step.name}` }),
    h("span", { class: "dlc-soft", text: step.effect }),
    h("span", { class: "dlc-number dlc-soft", text: `${step.milliseconds} ms` }));
  }

  filter() {
    const wanted = this.search.value.trim().toLowerCase();
    for (const row of this.list.children) {
      row.hidden = !row.dataset.name.toLowerCase().includes(wanted);
    }
  }

  step(name) {
    return this.steps.find((step) => step.name === name);
  }

  move(by) {
    const visible = this.visible();
    this.open(visible[visible.indexOf(this.current) + by]);
  }

  /** Ask for a pass; of several in short order only the last. */
  open(step, delay = 0) {
    clearTimeout(this.timer);
    if (!step || step === this.current) return;
    if (!delay) this.app.send("pass", { name: step.name });
    else this.timer = setTimeout(() => this.app.send("pass", { name: step.name }), delay);
  }
}
