/*
 * The controls of a move: a slider over the values to offer and a field for any other, for each
 * parameter, and the button that applies it.
 */

import { focusable, h } from "./dom.js";

const MARKS = { illegal: "✕ ", done: "✓ ", pending: "◦ ", legal: "" };
const STATES = { illegal: "not possible", done: "changes nothing",
  pending: "possible, but a later step must follow" };
const NUMBERS = {
  factor: "size", nparts: "parts", x_factor: "size", y_factor: "size", factor_axis: "place",
  offset: "ahead", pragma_value: "steps",
};

/** The move in words, to be spoken. */
export function named(item) {
  return item.text.startsWith(item.primitive) ? item.text : `${item.primitive} ${item.text}`;
}

export function spoken(item) {
  const text = named(item);
  return item.status === "legal" ? text : `${text}, ${STATES[item.status]}: ${item.reason}`;
}

/**
 * Make the controls of a move. `look(item, step, isPointed)` is called when the move gets the pointer
 * or the focus, or a value changes, `apply(item, step)` when it is wanted.
 */
export function controlsOf(item, { look, apply }) {
  const isOpen = item.status === "legal" || item.status === "pending";
  const inputs = isOpen ? item.parameters.map((parameter) => number(item, parameter)) : [];
  const values = () => (isOpen ? inputs.map(({ field }) => field.value)
    : item.parameters.map(({ default: first }) => String(first)));
  const step = () => withValues(item, values());
  const button = focusable("button", {
    type: "button", class: `dlc-move dlc-${item.status}`, "data-key": item.key,
    "aria-disabled": isOpen ? null : "true", "aria-label": spoken(item),
    text: MARKS[item.status] + item.text, on: { click: () => apply(item, step()) },
  });
  const root = h("div", {
    class: inputs.length ? "dlc-numbers" : "dlc-plain",
    on: {
      mouseenter: () => look(item, step(), true),
      focusin: () => look(item, step()),
      input: () => look(item, step()),
      keydown: (event) => {
        if (event.key === "Enter" && event.target.tagName === "INPUT") apply(item, step());
      },
    },
  }, ...inputs.map(({ root: row }) => row), button);
  root.item = item;
  return root;
}

/**
 * The step of a move with the values of its parameters, as typed; Python judges them, and reads the
 * whole numbers that would be rounded here.
 */
function withValues(item, values) {
  const numbers = values.map((text) => text.trim()).map((text) => (
    /^-?\d+$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : text));
  const extra = Object.fromEntries(item.parameters.slice(0, numbers.length)
    .map(({ name }, n) => [name, numbers[n]]));
  return { ...item.step, args: { ...item.step.args, ...extra } };
}

/** A slider that snaps to the values to offer, and beside it a field that takes any. */
function number(item, { name, label: loop, suggested, costs, default: first }) {
  const what = `${NUMBERS[name] ?? name}${loop ? ` of ${loop}` : ""}`;
  const label = `${what} in ${named(item)}`;
  const field = focusable("input", {
    type: "text", inputmode: "numeric", size: 5, value: first, "aria-label": `${label}, typed`,
    "data-key": `${item.key} ${name}`,
  });
  const slider = focusable("input", {
    type: "range", min: 0, max: Math.max(suggested.length - 1, 0), step: 1,
    "aria-label": label, "data-key": `${item.key} ${name} slider`,
  });
  const show = () => {
    const at = suggested.indexOf(Number(field.value));
    if (at >= 0) slider.value = at;
    slider.setAttribute("aria-valuetext", at < 0 ? field.value : costs[at] || String(suggested[at]));
    slider.classList.toggle("dlc-between", at < 0);
  };
  slider.addEventListener("input", () => {
    field.value = suggested[Number(slider.value)];
    show();
  });
  field.addEventListener("input", show);
  show();
  const head = loop ? h("span", { class: "dlc-soft dlc-number-name", text: loop }) : null;
  return { field, root: h("span", { class: "dlc-number-row" },
    head, suggested.length > 1 ? slider : null, field) };
}
