/*
 * A line between two parts of the page, moved by the pointer and by keys.
 */

import { focusable } from "./dom.js";

const STEP = 2; // per cent
const AWAY = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

export const LEAST = 10, MOST = 80;
const within = (value) => Math.min(Math.max(value, LEAST), MOST);

/**
 * Make a splitter. It sizes one part, `node()`, in per cent of `room()`, the element around it.
 *
 * `resize(percent, isDone)` is called while the line moves, with null for the size that the part had
 * at first; `isAfter` tells that the part that is sized stands behind the line.
 */
export class Splitter {
  constructor({ key, label, isBetweenColumns, isAfter, node, room, resize }) {
    Object.assign(this, { isBetweenColumns, node, room, resize, sign: isAfter ? -1 : 1 });
    this.root = focusable("div", {
      class: "dlc-splitter", role: "separator", tabindex: 0, "data-key": key, "aria-label": label,
      "aria-orientation": isBetweenColumns ? "vertical" : "horizontal",
      "aria-valuemin": LEAST, "aria-valuemax": MOST, "aria-valuenow": LEAST,
      title: `${label}: drag, or use the arrow keys; a double click or Enter goes back to the first size`,
      on: {
        focus: () => this.say(this.size()), keydown: (event) => this.key(event),
        pointerdown: (event) => this.hold(event), dblclick: () => this.reset(),
      },
    });
  }

  /** How much the part has now [per cent]. */
  size() {
    const side = this.isBetweenColumns ? "width" : "height";
    const all = this.room().getBoundingClientRect()[side];
    return all ? within((100 * this.node().getBoundingClientRect()[side]) / all) : LEAST;
  }

  say(size) {
    this.root.setAttribute("aria-valuenow", Math.round(size));
  }

  set(size, isDone) {
    const next = Math.round(within(size) * 10) / 10;
    this.resize(next, isDone);
    this.say(next);
  }

  reset() {
    this.resize(null, true);
    this.say(this.size());
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const step = AWAY[event.key];
    if (step) this.set(this.size() + step * STEP * this.sign, true);
    else if (event.key === "Home") this.set(LEAST, true);
    else if (event.key === "End") this.set(MOST, true);
    else if (event.key === "Enter") this.reset();
    else if (event.key === "Escape" && this.giveUp) this.giveUp();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Follow the pointer, once a frame, until it is let go; Escape brings the size back. */
  hold(event) {
    if (event.button !== 0) return;
    event.preventDefault();
    this.root.focus();
    const side = this.isBetweenColumns ? "clientX" : "clientY";
    const box = this.room().getBoundingClientRect();
    const all = this.isBetweenColumns ? box.width : box.height;
    const first = this.size(), from = event[side];
    let to = from, frame = null;
    const size = () => first + (this.sign * 100 * (to - from)) / all;
    const move = (moved) => {
      to = moved[side];
      frame ??= requestAnimationFrame(() => { frame = null; this.set(size(), false); });
    };
    const end = (why) => {
      cancelAnimationFrame(frame);
      this.root.classList.remove("dlc-held");
      done.abort();
      this.giveUp = null;
      if (why.type === "pointercancel") this.set(first, true);
      else if (to !== from) this.set(size(), true);
    };
    const done = new AbortController(), options = { signal: done.signal };
    this.giveUp = () => end({ type: "pointercancel" });
    this.root.setPointerCapture(event.pointerId);
    this.root.classList.add("dlc-held");
    window.addEventListener("pointermove", move, options);
    for (const name of ["pointerup", "pointercancel"]) window.addEventListener(name, end, options);
  }
}
