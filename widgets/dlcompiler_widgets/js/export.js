/*
 * What can be taken away, one kind at a time: looked at, copied, downloaded.
 *
 * Python sends one value for each export: its id, kind, file name and text belong together. From
 * the click on another kind until that value comes, nothing can be copied or downloaded.
 */

import { button, count, focusable, h, message } from "./dom.js";

const MOST_SHOWN = 20_000;

export class ExportPane {
  constructor(app) {
    this.app = app;
    this.shown = {};
    this.asked = null;
    this.root = h("section", { class: "dlc-export", "aria-label": "Export", hidden: true });
    this.root.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.close();
    });
  }

  draw(shown) {
    const wasOpen = !this.root.hidden, before = this.shown;
    this.shown = shown;
    this.root.hidden = !shown.kind;
    if (!shown.kind || shown.kind === this.asked) this.asked = null;
    if (!shown.kind) {
      this.root.replaceChildren();
      if (wasOpen) this.app.panes.bar?.focusOn("export");
      return;
    }
    const isSame = before.id === shown.id && before.kind === shown.kind;
    if (isSame && before.state === "running" && shown.state === "running") this.showProgress();
    else this.fill();
    if (!wasOpen) this.home().focus();
  }

  fill() {
    const { shown } = this;
    this.area = null;
    this.root.replaceChildren(...[
      h("div", { class: "dlc-export-head" },
        h("div", { class: "dlc-tabs", role: "group", "aria-label": "Kinds" },
          ...shown.kinds.map(({ name, text }) => button(`export ${name}`, text, text,
            () => this.ask(name), false, { "aria-pressed": String(name === shown.kind) }))),
        ...this.actions(),
        button("export close", "✕ Close", "Close the export", () => this.close())),
      h("p", { class: "dlc-soft", text: shown.note }), ...this.contents()].filter((node) => node));
  }

  /** The buttons for what is shown: only what is ready can be taken. */
  actions() {
    const { shown } = this, isReady = shown.state === "ready" && !this.asked;
    if (shown.state === "running") {
      return [button("export cancel", "◌ Cancel", "Cancel the recording",
        () => this.app.send("export", { cancel: shown.id }))];
    }
    return [
      button("export copy", "Copy", "Copy to the clipboard", () => this.copy(shown), !isReady),
      button("export download", `Download ${shown.file}`, `Download ${shown.file}`,
        () => this.download(shown), !isReady)];
  }

  contents() {
    const { shown } = this;
    if (shown.state === "failed") return [message(shown.error)];
    if (shown.state === "cancelled") {
      return [h("p", { text: "The recording was cancelled. Choose “Replay page” to record again." })];
    }
    if (shown.state === "running") {
      this.bar = h("progress", { class: "dlc-progress", "aria-label": "Recording" });
      this.words = h("span", { class: "dlc-soft" });
      this.showProgress();
      return [h("div", { class: "dlc-export-progress" }, this.bar, this.words)];
    }
    return this.text(shown);
  }

  /** Move the bar; the buttons stay, so that a click on Cancel is not lost. */
  showProgress() {
    const { done, all, text } = this.shown.progress;
    this.bar.max = all;
    this.bar.value = done;
    this.words.textContent = text;
  }

  text({ text, note }) {
    const isCut = text.length > MOST_SHOWN;
    this.area = focusable("textarea", { readonly: true, spellcheck: "false",
      rows: Math.min(text.split("\n").length + 1, isCut ? 5 : 14), "aria-label": note });
    this.area.value = text.slice(0, MOST_SHOWN);
    return [
      isCut ? h("p", { class: "dlc-soft", text: `${count(text.length)} characters; the first `
        + `${count(MOST_SHOWN)} are shown, all are copied and downloaded.` }) : null, this.area];
  }

  /** Ask for another kind; what is shown until it comes cannot be taken for it. */
  ask(kind) {
    this.asked = kind;
    for (const name of ["copy", "download"]) {
      this.root.querySelector(`[data-key="export ${name}"]`)?.setAttribute("aria-disabled", "true");
    }
    this.app.send("export", { kind });
  }

  home() {
    return this.root.querySelector('[aria-pressed="true"]');
  }

  close() {
    this.asked = null;
    this.app.send("export", {});
  }

  /** Whether an export is still the one that is shown; if not, say so. */
  isCurrent(shown) {
    if (!this.asked && shown.id === this.shown.id) return true;
    this.app.say({ tone: "info", details: [], text: "Wait: another export is being made." });
    return false;
  }

  async copy(shown) {
    if (!this.isCurrent(shown)) return;
    let done = true;
    try {
      await navigator.clipboard.writeText(shown.text);
    } catch {
      done = false; // no permission, or no secure context: it can be selected by hand
      this.area.focus();
      this.area.select();
    }
    this.app.say({ tone: "info", details: [], text: done ? "Copied."
      : "The clipboard is not available: copy the selected text." });
  }

  download(shown) {
    if (!this.isCurrent(shown)) return;
    const { file, media_type: type, text } = shown;
    const address = URL.createObjectURL(new Blob([text], { type }));
    const link = h("a", { href: address, download: file });
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
    this.app.say({ tone: "info", details: [], text: `Downloaded ${file}.` });
  }
}
