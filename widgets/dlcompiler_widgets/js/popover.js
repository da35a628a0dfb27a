/*
 * A box over a part of the widget that shows what is asked for, and moves nothing else on the page.
 *
 * Beside a control, it covers neither the control nor, where there is room, the pane that the control
 * is in. It is in the top layer of the page, so that no pane with a scroll bar cuts it off.
 */

import { focusable } from "./dom.js";

const GAP_PX = 6;
const USUAL_PX = 400;
const LEAST_PX = 250;
const LEAST_HIGH_PX = 120;
const AIM_PX = 24;
const EDGE_PX = 2;
let made = 0;

export class Popover {
  /**
   * `home` is the element that it belongs to: it is a part of that for the focus and the pointer.
   * `find` returns the area to use for an anchor in the part of the widget that is seen; by default
   * that is beside the home. It is at most `usual` pixels wide.
   */
  constructor(home, label, { find = (anchor, room) => areaBeside(anchor, home, room), usual = USUAL_PX } = {}) {
    Object.assign(this, { home, find, usual });
    this.root = focusable("div", { class: "dlc-popover", role: "group", tabindex: -1,
      "aria-label": label, id: `dlc-popover-${made += 1}-${Math.random().toString(36).slice(2)}`,
      popover: "manual", hidden: true });
    home.append(this.root);
    this.follow = () => this.place();
    this.sizes = new ResizeObserver(this.follow);
  }

  get isOpen() {
    return !this.root.hidden;
  }

  /** Show it beside a control: `anchor` is what it must not cover, `named` what it describes. */
  show(anchor, named = null) {
    if (this.named !== named) this.describe(named);
    this.anchor = anchor;
    if (!anchor.isConnected) return; // an answer that came after its output was removed
    if (!this.isOpen) {
      this.root.hidden = false;
      this.root.showPopover?.();
      document.addEventListener("scroll", this.follow, true);
      window.addEventListener("resize", this.follow);
      const widget = this.home.closest(".dlc-explorer");
      if (widget) this.sizes.observe(widget);
    }
    this.place();
  }

  hide() {
    if (!this.isOpen) return;
    this.describe(null);
    this.root.hidePopover?.();
    this.root.hidden = true;
    document.removeEventListener("scroll", this.follow, true);
    window.removeEventListener("resize", this.follow);
    this.sizes.disconnect();
  }

  describe(named) {
    this.named?.removeAttribute("aria-describedby");
    named?.setAttribute("aria-describedby", this.root.id);
    this.named = named;
  }

  /** Find a place for what it contains now. */
  place() {
    if (!this.isOpen) return;
    const widget = this.home.closest(".dlc-explorer");
    if (!widget || !this.anchor.isConnected) {
      this.hide();
      return;
    }
    const room = seenPart(widget), own = this.root;
    const isSeen = room.right - room.left > EDGE_PX && room.bottom - room.top > EDGE_PX;
    own.style.visibility = isSeen ? "" : "hidden"; // scrolled out of view
    if (!isSeen) return;
    const anchor = this.anchor.getBoundingClientRect(), area = this.find(anchor, room);
    own.style.width = `${Math.min(this.usual, area.right - area.left)}px`;
    own.style.maxHeight = `${Math.max(area.bottom - area.top, 0)}px`;
    const { width, height } = own.getBoundingClientRect();
    this.move(area.isLeft ? area.right - width : area.left,
      area.isAbove ? area.bottom - height : within(anchor.top, area.top, area.bottom - height));
  }

  /** Move it to a place in the window, whatever its position is relative to. */
  move(left, top) {
    const own = this.root;
    [own.style.left, own.style.top] = ["0px", "0px"];
    const zero = own.getBoundingClientRect();
    [own.style.left, own.style.top] = [`${left - zero.left}px`, `${top - zero.top}px`];
  }

  /** Whether the pointer, which went from one point to another, goes on into the box. */
  isAhead(from, to) {
    if (!this.isOpen || !from || !to) return false;
    const box = this.root.getBoundingClientRect();
    const [dx, dy] = [to.x - from.x, to.y - from.y];
    const across = to.x < box.left ? box.left - to.x : to.x > box.right ? box.right - to.x : 0;
    const down = to.y < box.top ? box.top - to.y : to.y > box.bottom ? box.bottom - to.y : 0;
    if (across && dx * across > 0) {
      const y = to.y + dy * (across / dx);
      return y > box.top - AIM_PX && y < box.bottom + AIM_PX;
    }
    if (down && dy * down > 0) {
      const x = to.x + dx * (down / dy);
      return x > box.left - AIM_PX && x < box.right + AIM_PX;
    }
    return false;
  }
}

const within = (value, low, high) => Math.max(low, Math.min(value, high));

/** The part of an element that is seen in the window, and in all that scrolls or cuts around it. */
export function seenPart(element) {
  const { clientWidth: right, clientHeight: bottom } = document.documentElement;
  let part = shared({ left: 0, right, top: 0, bottom }, element.getBoundingClientRect());
  // The overflow of the page itself is that of the window.
  for (let at = element.parentElement; at && at !== document.body; at = at.parentElement) {
    const { overflowX, overflowY } = getComputedStyle(at);
    if (overflowX !== "visible" || overflowY !== "visible") part = shared(part, at.getBoundingClientRect());
  }
  return { left: part.left + EDGE_PX, right: part.right - EDGE_PX,
    top: part.top + EDGE_PX, bottom: part.bottom - EDGE_PX };
}

function shared(a, b) {
  return { left: Math.max(a.left, b.left), right: Math.min(a.right, b.right),
    top: Math.max(a.top, b.top), bottom: Math.min(a.bottom, b.bottom) };
}

/**
 * The area to use: beside a pane, else beside the control in it, else the larger one above or below
 * the control. Where none is large enough, the lower end of the room.
 */
export function areaBeside(anchor, element, room) {
  const pane = element.getBoundingClientRect();
  const beside = [
    { left: pane.right + GAP_PX, right: room.right, isLeft: false },
    { left: room.left, right: pane.left - GAP_PX, isLeft: true },
    { left: anchor.right + GAP_PX, right: room.right, isLeft: false },
    { left: room.left, right: anchor.left - GAP_PX, isLeft: true },
  ].find(({ left, right }) => right - left >= LEAST_PX);
  if (beside) return { ...beside, top: room.top, bottom: room.bottom };
  const [above, below] = [anchor.top - GAP_PX - room.top, room.bottom - anchor.bottom - GAP_PX];
  if (Math.max(above, below) < LEAST_HIGH_PX) return { ...room, isAbove: true };
  return above > below
    ? { ...room, bottom: anchor.top - GAP_PX, isAbove: true }
    : { ...room, top: anchor.bottom + GAP_PX };
}
