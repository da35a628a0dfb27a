/*
 * The bar: what is shown, on which target, and what concerns the whole schedule.
 */

import { button, focusable, h } from "./dom.js";
import { choice, levelControls } from "./levels.js";

const screenText = () => (document.fullscreenElement ? "Leave full screen" : "Full screen");

export class BarPane {
  constructor(app) {
    this.app = app;
    this.tools = h("div", { class: "dlc-bar", role: "toolbar", "aria-label": "Schedule" });
    this.code = h("div", { class: "dlc-code", hidden: true });
    this.root = h("div", { class: "dlc-bar-place" }, this.tools, this.code);
  }

  /** Say what the button does now: the user may also leave the full screen by a key. */
  nameScreen() {
    const found = this.tools.querySelector('[data-key="maximise"]');
    if (found) found.textContent = screenText();
  }

  draw(bar) {
    const send = (op) => () => this.app.send(op);
    this.python = bar.python;
    const known = bar.known.join(" · ");
    this.tools.replaceChildren(...[
      h("div", { class: "dlc-bar-head" },
        h("div", { class: "dlc-title" },
          h("strong", { class: "dlc-clip", text: bar.name, title: bar.name }),
          h("span", { class: "dlc-soft", text: `${bar.targets ? "" : `${bar.target} · `}${bar.steps} ${bar.steps === 1 ? "step" : "steps"}` }),
          bar.branch ? h("span", { class: "dlc-soft dlc-clip", text: `branch: ${bar.branch}`, title: bar.branch }) : null),
        h("span", { class: "dlc-known dlc-clip", text: known, title: known })),
      ...(bar.targets ? [
        choice("target", "Target", bar.targets, bar.target,
          (op, args) => this.app.send(op, args)),
        button("write", "Write", "Write the expression that is scheduled",
          () => this.app.send("write"))] : []),
      button("undo", "↶ Undo", bar.undo ? `Undo: ${bar.undo}` : "Nothing to undo",
        send("undo"), !bar.undo),
      button("redo", "↷ Redo", bar.redo ? `Redo: ${bar.redo}` : "Nothing to redo",
        send("redo"), !bar.redo),
      this.measureButton(bar.measuring, bar.not_measured),
      this.predictButton(bar.predicting, bar.not_predicting),
      button("copy", "Copy as Python", "Copy the steps as Python", () => this.copy()),
      button("export", "Export ▾", "Take this schedule away: Python, notebook, JSON, link",
        () => this.app.send("export", { kind: "python" })),
      ...(bar.layout ? levelControls(bar.layout, (op, args) => this.app.send(op, args)) : []),
      document.fullscreenEnabled ? button("maximise", screenText(), "Fill the screen, or come back",
        () => this.app.maximise()) : null,
      button("help", "?", "Show the keys", () => this.app.help())].filter((node) => node));
  }

  measureButton({ state, doing }, whyNot) {
    if (state === "running") {
      return button("measure", "◌ Cancel", `Cancel: ${doing}`, () => this.app.cancel());
    }
    if (whyNot) {
      return focusable("button", { type: "button", "data-key": "measure", text: "▶ Run",
        title: whyNot, "aria-label": `Run: ${whyNot}`, "aria-disabled": "true",
        on: { click: () => this.app.say({ text: whyNot, tone: "info", details: [] }) } });
    }
    const isWaiting = state === "cancelling";
    return button("measure", isWaiting ? "Cancelling…" : "▶ Run",
      "Verify every step and measure this state, in a worker process", () => this.app.send("measure"), isWaiting);
  }

  predictButton(isOn, whyNot) {
    const title = whyNot || (isOn ? "Each step asks first what it will do: switch it off"
      : "Ask before each step what it will do, and reveal it afterwards");
    return focusable("button", { type: "button", "data-key": "predict", text: "Predict first", title,
      "aria-label": `Predict first: ${title}`, "aria-pressed": String(Boolean(isOn)),
      "aria-disabled": whyNot ? "true" : null,
      on: { click: () => (whyNot ? this.app.say({ text: whyNot, tone: "info", details: [] })
        : this.app.send("predicting", { on: !isOn })) } });
  }

  focusOn(key) {
    this.root.querySelector(`[data-key="${key}"]`).focus();
  }

  home() {
    return this.root.querySelector("button");
  }

  async copy() {
    const text = this.python;
    let done = false;
    try {
      await navigator.clipboard.writeText(text);
      done = true;
    } catch {
      // No permission, or no secure context: the text below can be selected by hand.
    }
    const area = focusable("textarea", { readonly: true, rows: Math.min(text.split("\n").length, 14),
      "aria-label": "The steps as Python", spellcheck: "false" });
    area.value = text;
    const close = focusable("button", { type: "button", text: "Close",
      on: { click: () => { this.code.hidden = true; this.root.querySelector('[data-key="copy"]').focus(); } } });
    this.code.replaceChildren(area, close);
    this.code.hidden = false;
    if (!done) area.select();
    this.app.say({ tone: "info", details: [], text: done
      ? `Copied ${text.trim().split("\n").length} lines of Python.`
      : "The clipboard is not available: copy the selected text." });
  }
}
