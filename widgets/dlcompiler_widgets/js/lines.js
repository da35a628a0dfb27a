/*
 * A line of a program: its number, whether a step added or removed it, and its pieces.
 */

import { h } from "./dom.js";

const SIGNS = { same: "", added: "+", removed: "−" };

/** Give a line that is shown again, perhaps elsewhere, its number. */
export function renumber(node, { number }) {
  const gutter = node.firstChild, text = String(number ?? "");
  if (gutter.textContent !== text) gutter.textContent = text;
  if (text && "item" in node.dataset) node.dataset.key = `line ${text}`;
}

/** Draw a line; most have no sign, and programs are long: an element that is empty is left out. */
export function programLine(line) {
  const sign = SIGNS[line.status];
  const text = h("span", { class: "dlc-text" }, ...line.tokens.map(piece));
  text.style.setProperty("--dlc-depth", line.depth);
  return h("div", { class: `dlc-line dlc-${line.status}`, "data-depth": line.depth,
    title: line.about || null },
  h("span", { class: "dlc-gutter", text: line.number ?? "" }),
  sign ? h("span", { class: "dlc-sign", text: sign }) : null, text);
}

/** A piece of a line; that of an axis knows the loops that the axis became. */
function piece({ kind, text, keys }) {
  if (kind === "text") return document.createTextNode(text);
  const node = h("span", { class: `dlc-${kind}`, text });
  node.keys = keys;
  return node;
}
