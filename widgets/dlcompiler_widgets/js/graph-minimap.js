/*
 * A small map of a graph that is larger than its frame: where the frame is, and what is chosen. One
 * canvas, whatever the graph; the pointer moves the frame. Keys scroll the frame itself.
 */

import { h } from "./dom.js";

const WIDEST = 130, HIGHEST = 170;

export class Minimap {
  constructor(frame) {
    this.frame = frame;
    this.canvas = h("canvas");
    this.root = h("div", { class: "dlc-graph-map", "aria-hidden": "true", hidden: true }, this.canvas);
    this.stressed = new Set();
    this.root.addEventListener("pointerdown", (event) => this.hold(event));
    this.sizes = new ResizeObserver(() => this.follow());
    this.sizes.observe(frame);
  }

  close() {
    this.sizes.disconnect();
  }

  draw(model, scene) {
    this.model = model;
    this.scene = scene;
    this.chosen = null;
    this.stressed = new Set();
    this.follow();
  }

  mark(item) {
    this.chosen = item?.w ? item : null;
    this.follow();
  }

  stress(keys) {
    this.stressed = keys;
    this.follow();
  }

  /** Draw the map anew in the next frame of the page. */
  follow() {
    this.waiting ??= requestAnimationFrame(() => { this.waiting = null; this.paint(); });
  }

  paint() {
    const { frame, model } = this;
    if (!model) return;
    const isLarger = frame.scrollHeight > frame.clientHeight + 40 || frame.scrollWidth > frame.clientWidth + 40;
    this.root.hidden = !isLarger;
    if (!isLarger) return;
    this.scale = Math.min(WIDEST / model.width, HIGHEST / model.height);
    const width = Math.max(model.width * this.scale, 14), height = Math.max(model.height * this.scale, 14);
    const dots = window.devicePixelRatio || 1;
    Object.assign(this.canvas, { width: width * dots, height: height * dots });
    Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
    const context = this.canvas.getContext("2d"), style = getComputedStyle(this.root);
    context.scale(dots * this.scale, dots * this.scale);
    context.fillStyle = style.getPropertyValue("--dlc-edge");
    context.globalAlpha = 0.25;
    for (const { x, y, w, h: high } of model.frames) context.fillRect(x, y, w, high);
    context.globalAlpha = 0.75;
    for (const { x, y, w, h: high } of model.nodes) context.fillRect(x, y, w, high);
    context.globalAlpha = 1;
    context.fillStyle = style.getPropertyValue("--dlc-accent");
    for (const each of model.nodes) {
      if (this.stressed.has(each.key) || each === this.chosen) context.fillRect(each.x, each.y, each.w, each.h);
    }
    const { left, top, width: w, height: high } = this.part();
    context.strokeStyle = style.getPropertyValue("--dlc-accent");
    context.lineWidth = 2 / this.scale;
    context.strokeRect(left, top, w, high);
  }

  /** The part of the picture that is seen, in its own lengths. */
  part() {
    const { a, d, e, f } = this.scene.getScreenCTM(), box = this.frame.getBoundingClientRect();
    return { left: (box.left - e) / a, top: (box.top - f) / d, width: box.width / a, height: box.height / d };
  }

  hold(event) {
    event.preventDefault();
    const go = ({ clientX, clientY }) => {
      const box = this.canvas.getBoundingClientRect(), seen = this.part(), { a, d } = this.scene.getScreenCTM();
      this.frame.scrollLeft += ((clientX - box.left) / this.scale - seen.left - seen.width / 2) * a;
      this.frame.scrollTop += ((clientY - box.top) / this.scale - seen.top - seen.height / 2) * d;
    };
    go(event);
    const done = new AbortController(), options = { signal: done.signal };
    window.addEventListener("pointermove", go, options);
    for (const name of ["pointerup", "pointercancel"]) window.addEventListener(name, () => done.abort(), options);
  }
}
