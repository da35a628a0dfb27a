/*
 * The list of keys: a dialog in the middle of the window, over everything, also in full screen.
 */

import { button, h } from "./dom.js";

export class HelpDialog {
  /** `keys` are pairs: the keys, and what they do. */
  constructor(keys) {
    this.list = h("dl", { class: "dlc-help-keys", tabindex: 0, "aria-label": "List of keys",
      "data-lm-suppress-shortcuts": "true" },
    ...keys.flatMap(([names, text]) => [h("dt", { text: names }), h("dd", { text })]));
    this.root = h("dialog", { class: "dlc-help", "aria-label": "Keys" },
      h("div", { class: "dlc-help-head" }, h("h3", { text: "Keys" }),
        button("help close", "✕ Close", "Close the list of keys (Esc)", () => this.root.close())),
      this.list);
    this.root.addEventListener("keydown", (event) => this.press(event));
    this.root.addEventListener("click", (event) => event.target === this.root && this.root.close());
    this.root.addEventListener("close", () => this.from?.isConnected && this.from.focus());
  }

  /** Show it; when it is closed, the focus goes back to where it was. */
  open() {
    if (this.root.open) return;
    this.from = document.activeElement;
    this.root.showModal();
    this.root.querySelector("button").focus();
  }

  /** No key goes on to the notebook behind. */
  press(event) {
    event.stopPropagation();
    if (event.key !== "Escape") return;
    event.preventDefault();
    this.root.close();
  }
}
