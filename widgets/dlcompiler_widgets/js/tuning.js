/*
 * The tuning dashboard in the browser: draws the view models that arrive, and sends what the user
 * wants. Nothing is decided here; each part shows one trait of the model.
 */

import { Board } from "./board.js";
import { button, h, message } from "./dom.js";
import { Notice } from "./notice.js";
import { CurvePane, OpenPicture } from "./tuning-pictures.js";
import { DetailPane, TrialsPane } from "./tuning-trials.js";

const SPEAK_EVERY_MS = 5000, SIZE_AFTER_MS = 150, SIZE_STEP_PX = 20;

class Dashboard extends Board {
  constructor(model, host, signal) {
    super(model);
    this.lastSpoken = -SPEAK_EVERY_MS;
    this.title = h("strong");
    this.state = h("span", { class: "dlc-pill" });
    this.buttons = h("span", { class: "dlc-tuning-buttons" });
    this.facts = h("dl", { class: "dlc-tuning-facts" });
    this.note = h("p", { class: "dlc-tuning-note" });
    this.panes = { progress: new CurvePane(this), picture: new OpenPicture(this),
      trials: new TrialsPane(this), detail: new DetailPane(this) };
    this.status = h("div", { class: "dlc-status", role: "status", "aria-live": "polite" });
    this.spoken = h("div", { class: "dlc-unseen", "aria-live": "polite" });
    this.root = h("div", { class: "dlc-explorer dlc-tuning" },
      h("div", { class: "dlc-bar" }, h("span", { class: "dlc-title" }, this.title, this.state),
        this.buttons),
      this.facts, this.note,
      h("div", { class: "dlc-grid" }, ...Object.values(this.panes).map((pane) => pane.root)),
      this.status, this.spoken);
    this.notice = new Notice(this.root, this.status);
    host.append(this.root);
    const sizes = new ResizeObserver(() => this.measure());
    for (const name of ["progress", "picture"]) sizes.observe(this.panes[name].root);
    this.follow(signal, () => {
      for (const timer of [this.sizing, this.speaking]) clearTimeout(timer);
      sizes.disconnect();
    });
    this.draw();
  }

  choose(key) {
    this.send("choose", { key });
  }

  /** Tell Python how wide pictures may be, when that has changed and stays so. */
  measure() {
    clearTimeout(this.sizing);
    this.sizing = setTimeout(() => {
      const sizes = {};
      for (const name of ["progress", "picture"]) {
        const width = this.panes[name].room();
        if (width > 0) sizes[name] = Math.floor(width / SIZE_STEP_PX) * SIZE_STEP_PX;
      }
      const text = JSON.stringify(sizes);
      if (text === this.sizes || text === "{}") return;
      this.sizes = text;
      this.send("size", sizes);
    }, SIZE_AFTER_MS);
  }

  // -- drawing ---------------------------------------------------------------------------------

  draw() {
    const active = this.root.contains(document.activeElement) ? document.activeElement : null;
    this.drawHead(this.model.get("head"));
    for (const [name, pane] of Object.entries(this.panes)) {
      const value = this.model.get(name), base = this.model.get(`${name}_base`);
      if (pane.drawn === value && pane.base === base) continue;
      [pane.drawn, pane.base] = [value, base];
      pane.draw(value, base);
    }
    this.say(this.model.get("status"));
    this.restoreFocus(active);
  }

  drawHead(head) {
    if (this.head === head) return;
    this.head = head;
    this.root.dataset.state = head.state;
    this.title.textContent = head.title;
    this.state.textContent = head.state;
    this.note.textContent = head.note ? `Note: ${head.note}` : "";
    this.facts.replaceChildren(...head.facts.flatMap(([name, value]) => [
      h("dt", { "data-fact": name, text: name }), h("dd", { "data-fact": name, text: value })]));
    this.drawButtons(head);
    this.speak(head);
  }

  drawButtons({ can_pause: canPause, can_resume: canResume, can_stop: canStop, is_over: isOver }) {
    const shown = JSON.stringify([canPause, canResume, canStop, isOver]);
    if (shown === this.shownButtons) return;
    this.shownButtons = shown;
    const pause = canResume
      ? button("resume", "Resume", "Resume: go on measuring", () => this.send("resume"))
      : button("pause", "Pause", "Pause; what is measured now is measured again later",
        () => this.send("pause"), !canPause);
    this.buttons.replaceChildren(pause,
      button("stop", "Stop", "Stop tuning; what was measured is kept", () => this.send("stop"),
        !canStop));
  }

  say(status) {
    const text = JSON.stringify(status);
    if (text === this.said) return;
    this.said = text;
    this.status.replaceChildren(message(status));
    this.notice.say(status);
  }

  /** Tell a screen reader, but not more often than it can be listened to. */
  speak({ is_over: isOver, text }) {
    const wait = this.lastSpoken + SPEAK_EVERY_MS - performance.now();
    clearTimeout(this.speaking);
    if (isOver || wait <= 0) {
      this.spoken.textContent = text;
      this.lastSpoken = performance.now();
    } else this.speaking = setTimeout(() => this.speak(this.model.get("head")), wait);
  }

  /** Give the focus back to what stands where the focused element stood. */
  restoreFocus(active) {
    const key = active?.dataset.key;
    if (!key || this.root.contains(active)) return;
    const same = [...this.root.querySelectorAll("[data-key]")]
      .find((node) => node.dataset.key === key);
    const paired = { pause: "resume", resume: "pause" }[key];
    (same ?? (paired && this.root.querySelector(`[data-key="${paired}"]`)))
      ?.focus({ preventScroll: true });
  }
}

export const main = {
  render({ model, el, signal }) {
    new Dashboard(model, el, signal);
  },
};

export default main;
