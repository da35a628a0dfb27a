/*
 * What the views have in common that talk to Python: requests, their answers, and a lost kernel.
 */

import { Channel, hasNoKernel } from "./channel.js";
import { NO_KERNEL } from "./notice.js";

const HELLO_AFTER_MS = 1200;

/** Sends requests. A view of this kind has a `root`, and says a status by `say`. */
export class Page {
  constructor(model) {
    this.model = model;
    this.channel = new Channel(model);
    this.isLive = true;
    this.lastSeq = -1;
  }

  send(op, args = {}) {
    if (this.isLive) this.root.setAttribute("aria-busy", "true");
    else this.say(NO_KERNEL);
    return this.channel.send(op, args);
  }

  /** Without Python the page stays as it is, and says so, until an answer comes. */
  lose() {
    this.isLive = false;
    this.channel.clear();
    this.root.removeAttribute("aria-busy");
    this.say(NO_KERNEL);
  }
}

/** A page that a thread of Python changes, too: it draws the newest answer by `draw`, once a frame. */
export class Board extends Page {
  /** Draw what arrives, until the signal; then call `end`. */
  follow(signal, end) {
    const update = () => this.redraw();
    this.model.on("change:reply", update);
    // A host says this when a kernel is restarted, and nothing when all is well.
    this.model.on("comm_live_update", () => this.lose());
    const hello = setTimeout(() => this.greet(), HELLO_AFTER_MS);
    signal?.addEventListener("abort", () => {
      this.model.off("change:reply", update);
      clearTimeout(hello);
      end();
    });
  }

  /** From now on, ask by the model that is served while a cell is busy, if the host has it. */
  async greet() {
    const own = await this.model.widget_manager?.get_model?.(this.model.get("control"));
    if (!own) return;
    if (hasNoKernel(own)) return this.lose();
    own.set("hello", own.get("hello") + 1);
    own.save_changes();
    this.channel.moveTo(own);
  }

  redraw() {
    this.channel.note(this.model.get("reply"));
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = null;
      const { seq, last } = this.model.get("reply");
      if (seq <= this.lastSeq) return;
      this.lastSeq = seq;
      this.isLive = true;
      this.draw();
      // What a thread pushes is no answer: the newest request must have one.
      if (!this.channel.isStale(last)) this.root.removeAttribute("aria-busy");
    });
  }
}
