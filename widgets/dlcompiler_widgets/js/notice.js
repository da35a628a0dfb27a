/*
 * A message that must not be missed: over the part of the widget that is seen.
 *
 * The status line is the last line of the widget. In a notebook it is often below the window.
 */

import { button, message } from "./dom.js";
import { Popover, seenPart } from "./popover.js";

const USUAL_PX = 460;

export class Notice {
  /** `status` is the line that says the same at the end of the widget. */
  constructor(widget, status) {
    Object.assign(this, { widget, status });
    this.popover = new Popover(widget, "Message", { usual: USUAL_PX,
      find: (_, room) => ({ ...room, isAbove: true, left: Math.max(room.left, (room.left + room.right - USUAL_PX) / 2) }) });
    this.root = this.popover.root;
    this.root.classList.add("dlc-notice");
    this.root.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.popover.hide();
    });
  }

  /** Show an error, unless the status line is seen; any other message closes it. */
  say(status) {
    if (status.tone !== "error" || this.isLineSeen()) {
      this.popover.hide();
      return;
    }
    this.root.replaceChildren(message(status),
      button("notice close", "✕ Close", "Close the message", () => this.popover.hide()));
    this.popover.show(this.widget);
  }

  isLineSeen() {
    const line = this.status.getBoundingClientRect(), part = seenPart(this.widget);
    return line.bottom <= part.bottom + line.height / 2 && line.top >= part.top;
  }
}

export const NO_KERNEL = { tone: "error",
  text: "The kernel that made this is gone. Run the cells again, from the first, to go on.",
  details: [] };
