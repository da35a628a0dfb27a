/*
 * A box beside a control, inside the widget: it covers neither the control nor, where there is room,
 * the pane that the control is in.
 *
 * It is in the top layer of the page, so that no pane with a scroll bar cuts it off.
 */

import { focusable } from "./dom.js";

const GAP_PX = 6;
const USUAL_PX = 400;
const LEAST_PX = 250;
const AIM_PX = 24;
let made = 0;

export class Popover {
  /** `home` is the element that it belongs to: it is a part of that for the focus and the pointer. */
  constructor(home, label) {
    this.home = home;
    this.root = focusable("div", { class: "dlc-popover", role: "group", tabindex: -1,
      "aria-label": label, id: `dlc-popover-${made += 1}-${Math.random().toString(36).slice(2)}`,
      popover: "manual", hidden: true });
    home.append(this.root);
    this.follow = () => this.place();
  }

  get isOpen() {
    return !this.root.hidden;
  }

  /** Show it beside a control: `anchor` is what it must not cover, `named` what it describes. */
  show(anchor, named) {
    if (this.named !== named) this.describe(named);
    this.anchor = anchor;
    if (!this.isOpen) {
      this.root.hidden = false;
      this.root.showPopover?.();
      document.addEventListener("scroll", this.follow, true);
      window.addEventListener("resize", this.follow);
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
    const room = seen(widget.getBoundingClientRect());
    const anchor = this.anchor.getBoundingClientRect();
    const pane = this.home.getBoundingClientRect();
    const own = this.root, side = sideOf(anchor, pane, room);
    own.style.width = `${Math.min(USUAL_PX, side.right - side.left)}px`;
    own.style.maxHeight = `${Math.max(side.bottom - side.top, 0)}px`;
    const { width, height } = own.getBoundingClientRect();
    this.move(side.isLeft ? side.right - width : side.left,
      side.isAbove ? side.bottom - height : within(anchor.top, side.top, side.bottom - height));
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

/** The part of a box that the window shows. */
function seen({ left, right, top, bottom }) {
  const { clientWidth: width, clientHeight: height } = document.documentElement;
  return { left: Math.max(left, 0) + 2, right: Math.min(right, width) - 2,
    top: Math.max(top, 0) + 2, bottom: Math.min(bottom, height) - 2 };
}

/** The area to use: beside the pane, else beside the control, else the larger one above or below. */
function sideOf(anchor, pane, room) {
  const beside = [
    { left: pane.right + GAP_PX, right: room.right, isLeft: false },
    { left: room.left, right: pane.left - GAP_PX, isLeft: true },
    { left: anchor.right + GAP_PX, right: room.right, isLeft: false },
    { left: room.left, right: anchor.left - GAP_PX, isLeft: true },
  ].find(({ left, right }) => right - left >= LEAST_PX);
  if (beside) return { ...beside, top: room.top, bottom: room.bottom };
  const [above, below] = [anchor.top - GAP_PX - room.top, room.bottom - anchor.bottom - GAP_PX];
  return above > below
    ? { ...room, bottom: anchor.top - GAP_PX, isAbove: true }
    : { ...room, top: anchor.bottom + GAP_PX };
}
