/*
 * The editor of the expression: notation, and a line for each tensor that is read.
 */

import { button, focusable, h, message } from "./dom.js";

export class WritePane {
  constructor(app) {
    this.app = app;
    this.root = h("section", { class: "dlc-export dlc-write", "aria-label": "Write an expression",
      hidden: true });
    this.root.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.close();
      else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.apply();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    // JupyterLab 4.6 forbids new lines in the outputs of a cell: on each key, it adds a listener to
    // the element that has the focus. This one comes first.
    this.root.addEventListener("beforeinput", (event) => event.stopPropagation(), true);
  }

  draw(shown) {
    const wasOpen = !this.root.hidden;
    this.root.hidden = !Object.keys(shown).length;
    if (this.root.hidden) {
      this.root.replaceChildren();
      if (wasOpen) this.app.panes.bar?.focusOn("write");
      return;
    }
    this.area = focusable("textarea", { spellcheck: "false", "aria-label": "Expression",
      "aria-invalid": shown.error ? "true" : null,
      rows: Math.min(Math.max(shown.text.split("\n").length + 1, 4), 14) });
    this.area.value = shown.text;
    this.root.replaceChildren(...[
      h("p", { class: "dlc-soft", text: shown.how_to_write }), this.area,
      shown.error ? this.problem(shown.error) : null,
      h("div", { class: "dlc-export-head" },
        button("write apply", "Apply", "Make a new schedule of this expression (Ctrl+Enter)",
          () => this.apply()),
        button("write close", "✕ Close", "Close the editor", () => this.close())),
      shown.former?.length ? this.earlier(shown.former) : null,
    ].filter((node) => node));
    if (this.app.lastSeq >= 0) this.area.focus(); // not as long as nobody has asked for it
    if (shown.error) this.point(shown.error);
  }

  /** The expressions that were left, the last one first: each has its schedule with its steps. */
  earlier(former) {
    const choices = former.map(({ text }, n) => button(`write former ${n}`, `↶ ${text}`,
      `Return to ${text}`, () => this.app.send("write", { former: n })));
    return h("div", { class: "dlc-export-head", role: "group", "aria-label": "Earlier expressions" },
      h("span", { class: "dlc-soft", text: "Earlier:" }), ...choices.reverse());
  }

  /** What is wrong: in words, and the line with a caret under the character. */
  problem(error) {
    const details = error.details.filter(([label]) => label !== "excerpt");
    const where = error.line ? `line ${error.line}, column ${error.column}: ` : "";
    return h("div", { class: "dlc-write-error", role: "alert" },
      message({ ...error, text: where + error.text, details }),
      error.excerpt ? h("pre", { class: "dlc-caret", text: error.excerpt }) : null);
  }

  /** Put the cursor on the character that is wrong. */
  point({ line, column }) {
    if (!line) return;
    const lines = this.area.value.split("\n");
    const before = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
    const at = Math.min(before + column - 1, this.area.value.length);
    this.area.setSelectionRange(at, Math.min(at + 1, this.area.value.length));
  }

  home() {
    return this.area;
  }

  apply() {
    this.app.send("write", { text: this.area.value });
  }

  close() {
    this.app.send("write", { close: true });
  }
}
