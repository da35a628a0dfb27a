/*
 * What may be done next: every move of the chosen loop; the refused ones say why.
 */

import { focusable, h } from "./dom.js";

export class MovesPane {
  constructor(app) {
    this.app = app;
    this.moves = h("div", { class: "dlc-moves" });
    this.why = h("div", { class: "dlc-why" });
    this.root = h("section", { class: "dlc-pane dlc-palette", "aria-label": "Moves" },
      this.moves, this.why);
    this.moves.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      app.focusTree();
    });
  }

  draw(palette) {
    const groups = (items) => items.map((group) => this.group(group));
    this.moves.replaceChildren(
      h("h3", { text: palette.title }),
      ...groups(palette.loop),
      palette.loop.length && palette.stage.length
        ? h("h4", { text: "its stage" }) : "",
      ...groups(palette.stage));
    this.explain(null);
  }

  home() {
    return this.moves.querySelector("button, input");
  }

  group(group) {
    return h("div", { class: "dlc-group", role: "group", "aria-label": group.name },
      h("span", { class: "dlc-group-name", text: group.name }),
      h("div", { class: "dlc-controls" }, ...group.items.flatMap((item) => this.move(item))));
  }

  /** The controls of a move: a button, and for its parameters inputs and suggested values. */
  move(item) {
    const explain = { mouseenter: () => this.explain(item), focus: () => this.explain(item) };
    const inputs = item.status === "illegal" ? [] : item.parameters.map((parameter) =>
      h("input", {
        type: "text", inputmode: "numeric", size: 4, value: parameter.default,
        "aria-label": `${parameter.name} of ${this.named(item)}`,
        "data-key": `${item.key} ${parameter.name}`,
        on: { ...explain, keydown: (event) => event.key === "Enter" && apply() },
      }));
    const apply = (values = null) => {
      if (item.status === "illegal" || item.status === "done") return this.refuse(item);
      return this.app.send("apply", { step: this.step(item, values ?? inputs.map((i) => i.value)) });
    };
    const mark = { illegal: "✕ ", done: "✓ ", pending: "◦ ", legal: "" }[item.status];
    const main = focusable("button", {
      type: "button", class: `dlc-move dlc-${item.status}`, "data-key": item.key,
      "aria-disabled": ["illegal", "done"].includes(item.status) ? "true" : null,
      "aria-label": this.spoken(item), text: mark + item.text,
      on: { ...explain, click: () => apply() },
    });
    const hasChips = item.parameters.length === 1 && inputs.length === 1;
    const chips = hasChips ? item.parameters[0].suggested.map((value) =>
      focusable("button", {
        type: "button", class: "dlc-chip", text: value, "data-key": `${item.key} = ${value}`,
        "aria-label": `${item.primitive} by ${value}`,
        on: { ...explain, click: () => apply([String(value)]) },
      })) : [];
    return [...chips, ...inputs, main];
  }

  /** The step of a move with the values of its parameters, as typed; Python judges them. */
  step(item, values) {
    const numbers = values.map((text) => text.trim())
      .map((text) => (/^-?\d+$/.test(text) ? Number(text) : text));
    const extra = Object.fromEntries(item.parameters.map(({ name }, n) => [name, numbers[n]]));
    return { ...item.step, args: { ...item.step.args, ...extra } };
  }

  named(item) {
    return item.text === item.primitive ? item.text : `${item.primitive} ${item.text}`;
  }

  spoken(item) {
    const text = this.named(item);
    if (item.status === "legal") return text;
    const state = { illegal: "not possible", done: "nothing to do", pending: "will owe" };
    return `${text}, ${state[item.status]}: ${item.reason}`;
  }

  /** Say what a move does, or why it cannot be done, below the palette. */
  explain(item) {
    if (!item) {
      this.why.replaceChildren(h("p", { class: "dlc-soft",
        text: "✕ not possible here · ✓ so already · ◦ leaves something to put right" }));
      return;
    }
    const lines = { because: item.because, hint: item.hint, got: item.got };
    const heads = { illegal: "not possible", done: "so already", pending: "then still owed" };
    this.why.replaceChildren(
      h("p", {}, h("strong", { text: item.primitive }), h("span", {
        text: item.status === "legal" ? ` ${item.about}`
          : ` ${heads[item.status]}${item.kind ? ` (${item.kind})` : ""}: ${item.reason}` })),
      ...Object.entries(lines).filter(([, text]) => text).map(([label, text]) =>
        h("p", { class: "dlc-soft" }, h("b", { text: `${label} ` }), h("span", { text }))));
  }

  refuse(item) {
    this.explain(item);
    this.app.say({ text: `${this.named(item)}: ${item.reason}`,
      tone: item.status === "illegal" ? "error" : "info",
      details: item.hint ? [["hint", item.hint]] : [] });
  }
}
