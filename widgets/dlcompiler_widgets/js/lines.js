/*
 * A line of a program: its number, whether a step added or removed it, and its pieces.
 */

import { h } from "./dom.js";

const SIGNS = { same: "", added: "+", removed: "−" };

export function programLine(line) {
  const tokens = line.tokens.map(({ kind, text }) =>
    (kind === "text" ? document.createTextNode(text) : h("span", { class: `dlc-${kind}`, text })));
  return h("div", { class: `dlc-line dlc-${line.status}`, "data-depth": line.depth },
    h("span", { class: "dlc-gutter", text: line.number ?? "" }),
    h("span", { class: "dlc-sign", text: SIGNS[line.status] }),
    h("span", { class: "dlc-text", style: { paddingLeft: `${line.depth * 2}ch` } }, ...tokens));
}
