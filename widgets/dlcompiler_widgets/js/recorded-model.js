/*
 * In place of the model of a widget, on a page without a kernel: traits, requests and listeners.
 */

/** A model whose requests are answered by `answer`, which ends with `notify`. */
export class RecordedModel {
  constructor(data, traits) {
    this.data = data;
    this.traits = traits;
    this.listeners = new Map();
    this.seq = 0;
  }

  get(name) {
    return this.traits[name];
  }

  set(name, value) {
    this.traits[name] = value;
    if (name === "intent") this.asked = value;
  }

  save_changes() {
    const intent = this.asked;
    this.asked = null;
    if (intent) queueMicrotask(() => this.answer(intent));
  }

  on(event, listener) {
    this.listeners.set(event, [...(this.listeners.get(event) ?? []), listener]);
  }

  off(event, listener) {
    const others = (this.listeners.get(event) ?? []).filter((each) => each !== listener);
    this.listeners.set(event, others);
  }

  /** Say that an answer has come. */
  notify() {
    for (const listener of this.listeners.get("change:reply") ?? []) listener();
  }
}

/** A status that says something. */
export const info = (text) => ({ text, tone: "info", details: [] });

/** Show the recording of this page, if there is one: `open` gets its data and the place for it. */
export function play(open) {
  const place = document.getElementById("recording");
  if (!place) return;
  const el = document.getElementById("workbench");
  el.replaceChildren();
  open(JSON.parse(place.textContent), el);
}
