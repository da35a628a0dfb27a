/*
 * Predict first: what will a step do? The questions before it, and what came of the answers, in a box
 * beside the moves: the nest and what moves of the picture stay where they are.
 */

import { measureBoth } from "./compare.js";
import { button, focusable, h } from "./dom.js";
import { Popover, areaBeside } from "./popover.js";

const SIGNS = { right: "✓ right", wrong: "✕ not so", open: "… open", unsaid: "" };
const USUAL_PX = 520;

export class PredictPane {
  constructor(app) {
    this.app = app;
    this.root = h("section", { class: "dlc-predict", "aria-label": "Predict first" });
    this.popover = new Popover(this.root, "Prediction", { usual: USUAL_PX,
      find: (anchor, room) => areaBeside(anchor, this.neighbour(), room) });
    this.root.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      app.send("withdraw");
    });
  }

  /** The pane that a step is taken in. */
  neighbour() {
    const { moves, tree } = this.app.panes;
    return [moves, tree].find((pane) => pane && !pane.root.hidden)?.root ?? this.app.root;
  }

  /** Whether a step waits: until it is answered, no box says what it would do. */
  get isAsking() {
    return Boolean(this.question);
  }

  draw({ question, reveal, measuring }) {
    const text = JSON.stringify(question ?? [reveal ?? null, measuring]);
    if (text === this.text) return; // what is half answered stays
    this.text = text;
    this.question = question;
    if (!question && !reveal) {
      this.popover.hide();
      this.popover.root.replaceChildren();
      return;
    }
    if (question) this.app.panes.moves?.clear();
    this.popover.root.replaceChildren(...(question ? this.ask(question) : this.reveal(reveal, measuring)));
    this.popover.show(this.neighbour());
    if (question) this.home().focus({ preventScroll: true });
  }

  ask({ title, speeds, same, factors, levels }) {
    const sets = [
      this.choices("speed", "The program will be", speeds.map((name) => ({ name, text: name }))),
      this.choices("factor", "by", factors.map((name) => ({ name, text: name }))),
      this.choices("level", "Memory traffic changes", levels),
    ].filter((set) => set);
    const missing = h("p", { role: "alert", text: "Choose an answer first, or press Skip.", hidden: true });
    const form = h("form", { on: {
      change: () => {
        const size = form.querySelector('[name="factor"]')?.closest("fieldset");
        if (size) size.disabled = new FormData(form).get("speed") === same;
      },
      submit: (event) => {
        event.preventDefault();
        const said = Object.fromEntries(new FormData(form));
        missing.hidden = Object.keys(said).length > 0;
        if (missing.hidden) this.app.send("answer", said);
      },
    } }, ...sets, h("span", { class: "dlc-controls" },
      focusable("button", { type: "submit", "data-key": "answer", text: "Apply and reveal" }),
      button("skip", "Skip", "Apply it without a prediction", () => this.app.send("skip")),
      button("withdraw", "Cancel", "Do not apply it", () => this.app.send("withdraw"))), missing);
    return [h("strong", { text: `What will ${title} do?` }), form];
  }

  choices(name, legend, items) {
    if (!items.length) return null;
    return h("fieldset", {}, h("legend", { text: legend }), ...items.map((item) =>
      h("label", {}, focusable("input", { type: "radio", name, value: item.name,
        "data-key": `${name} ${item.name}` }), h("span", { text: item.text }))));
  }

  reveal({ title, summary, lines, why, hint, states }, measuring) {
    const row = ({ question, said, was, verdict, kind }) => h("tr", {},
      h("th", { scope: "row", text: question }), h("td", { text: said }), h("td", { text: was }),
      h("td", { class: "dlc-soft", text: kind }), h("td", { class: "dlc-verdict", text: SIGNS[verdict] }));
    return [
      h("div", { class: "dlc-head" }, h("strong", { text: `${title}: ${summary}` }),
        button("withdraw", "Close", "Hide what was revealed", () => this.app.send("withdraw"))),
      h("table", { class: "dlc-table" },
        h("thead", {}, h("tr", {}, ...["", "you said", "it was", "", ""].map((text) =>
          h(text ? "th" : "td", text ? { scope: "col", text } : {})))),
        h("tbody", {}, ...lines.map(row))),
      h("p", {}, h("b", { text: "Why: " }), h("span", { text: why })),
      hint ? h("div", { class: "dlc-controls" }, h("span", { class: "dlc-soft", text: hint }),
        measureBoth(this.app, "measure before and after", states, { measuring })) : null,
    ].filter((node) => node);
  }

  home() {
    return this.popover.root.querySelector("input, button");
  }
}
