/*
 * What can be taken away, one kind at a time: looked at, copied, downloaded.
 */

import { button, count, focusable, h } from "./dom.js";

const MOST_SHOWN = 20_000;

export class ExportPane {
  constructor(app) {
    this.app = app;
    this.root = h("section", { class: "dlc-export", "aria-label": "Export", hidden: true });
    this.root.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.close();
    });
  }

  draw(shown) {
    const wasOpen = !this.root.hidden;
    this.root.hidden = !shown.kind;
    if (!shown.kind) {
      this.root.replaceChildren();
      if (wasOpen) this.app.panes.bar?.focusOn("export");
      return;
    }
    this.text = shown.text;
    const isCut = shown.text.length > MOST_SHOWN;
    this.area = focusable("textarea", { readonly: true, spellcheck: "false",
      rows: Math.min(shown.text.split("\n").length + 1, isCut ? 5 : 14), "aria-label": shown.note });
    this.area.value = shown.text.slice(0, MOST_SHOWN);
    this.root.replaceChildren(...[
      h("div", { class: "dlc-export-head" },
        h("div", { class: "dlc-tabs", role: "group", "aria-label": "Kinds" },
          ...shown.kinds.map(({ name, text }) => button(`export ${name}`, text, text,
            () => this.app.send("export", { kind: name }), false,
            { "aria-pressed": String(name === shown.kind) }))),
        button("export copy", "Copy", "Copy to the clipboard", () => this.copy()),
        button("export download", `Download ${shown.file}`, `Download ${shown.file}`,
          () => this.download(shown)),
        button("export close", "✕ Close", "Close the export", () => this.close())),
      h("p", { class: "dlc-soft", text: shown.note }),
      isCut ? h("p", { class: "dlc-soft", text: `${count(shown.text.length)} characters; the first `
        + `${count(MOST_SHOWN)} are shown, all are copied and downloaded.` }) : null, this.area].filter((node) => node));
    if (!wasOpen) this.home().focus();
  }

  home() {
    return this.root.querySelector('[aria-pressed="true"]');
  }

  close() {
    this.app.send("export", {});
  }

  async copy() {
    let done = true;
    try {
      await navigator.clipboard.writeText(this.text);
    } catch {
      done = false; // no permission, or no secure context: it can be selected by hand
      this.area.focus();
      this.area.select();
    }
    this.app.say({ tone: "info", details: [], text: done ? "Copied."
      : "The clipboard is not available: copy the selected text." });
  }

  download({ file, media_type: type, text }) {
    const address = URL.createObjectURL(new Blob([text], { type }));
    const link = h("a", { href: address, download: file });
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
    this.app.say({ tone: "info", details: [], text: `Downloaded ${file}.` });
  }
}
