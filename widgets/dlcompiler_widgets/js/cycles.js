/*
 * Pictures of an accelerator's cycles: the cycles that are shown are chosen by buttons, or by dragging
 * over the picture. Python draws them.
 */

import { button, count, h, svg, swallowClick } from "./dom.js";
import { drawScene, markScene } from "./scene.js";

const STEP = 2; // a zoom shows this part of the cycles, or so many times as many
const LEAST = 8; // cycles
const DRAG_PX = 5;

export class CyclesDrawer {
  constructor(model, app, before) {
    this.model = model;
    this.app = app;
    this.root = drawScene(model, (key, { line }) => {
      this.app.point(line ?? null, this.model.state);
      this.app.choose(key);
    }, before);
    this.frame = this.root.querySelector(".dlc-scroll");
    if (!model.window) return; // it is being simulated
    this.frame.before(this.controls());
    this.picture = this.frame.querySelector("svg");
    this.picture.onpointerdown = (event) => this.drag(event);
    if (app.pointed?.state === model.state) this.pointAt(app.pointed.line);
    else if (app.pointed) app.point(null);
  }

  get isWhole() {
    const { first, last, cycles } = this.model.window;
    return first === 0 && last === cycles;
  }

  controls() {
    const { first, last, cycles } = this.model.window, shown = last - first;
    const move = (by) => this.show(first + by, last + by);
    const middle = (first + last) / 2;
    const zoom = (size) => this.show(middle - size / 2, middle + size / 2);
    return h("div", { class: "dlc-controls", role: "group", "aria-label": "Cycles that are shown" },
      button("cycles before", "◀", "Earlier cycles", () => move(-shown / 2), first === 0),
      button("cycles behind", "▶", "Later cycles", () => move(shown / 2), last === cycles),
      button("fewer cycles", "Fewer", "Fewer cycles, the middle half", () => zoom(shown / STEP), shown <= LEAST),
      button("more cycles", "More", "More cycles, twice as many", () => zoom(shown * STEP), this.isWhole),
      button("all cycles", "All", "All cycles", () => this.app.send("cycles", {}), this.isWhole),
      h("span", { class: "dlc-soft", text: this.isWhole
        ? `all ${count(cycles)} cycles; drag over the picture to see some of them`
        : `cycles ${count(first)} to ${count(last)} of ${count(cycles)}` }));
  }

  /** Ask for other cycles: as many as wanted, but inside the program. */
  show(low, high) {
    const { cycles } = this.model.window;
    const size = Math.min(Math.max(Math.round(high - low), LEAST), cycles);
    const first = Math.min(Math.max(Math.round(low), 0), cycles - size);
    this.app.send("cycles", size === cycles ? {} : { first, last: first + size });
  }

  /** Drag over cycles to see only these; with Shift, a picture larger than its frame is moved. */
  drag(event) {
    const { frame, picture } = this;
    if (event.button !== 0 || event.pointerType === "touch" || event.shiftKey) return;
    event.stopPropagation();
    event.preventDefault();
    frame.focus({ preventScroll: true });
    const start = this.xOf(event), done = new AbortController(), options = { signal: done.signal };
    const band = svg("rect", { class: "dlc-range", y: 0, height: picture.viewBox.baseVal.height });
    const isDragged = (at) => Math.abs(at.clientX - event.clientX) >= DRAG_PX;
    window.addEventListener("pointermove", (at) => {
      if (!isDragged(at)) return;
      const [low, high] = [start, this.xOf(at)].sort((a, b) => a - b);
      if (!band.isConnected) picture.append(band);
      band.setAttribute("x", low);
      band.setAttribute("width", high - low);
    }, options);
    const end = (at) => {
      done.abort();
      band.remove();
      if (at.type !== "pointerup" || !isDragged(at)) return;
      swallowClick();
      this.show(...[start, this.xOf(at)].map((x) => this.cycleAt(x)).sort((a, b) => a - b));
    };
    for (const name of ["pointerup", "pointercancel"]) window.addEventListener(name, end, options);
  }

  /** Where the pointer is over the cycles of the picture. */
  xOf(event) {
    const { a, e } = this.picture.getScreenCTM(), { left, right } = this.model.window;
    return Math.min(Math.max((event.clientX - e) / a, left), right);
  }

  cycleAt(x) {
    const { first, last, left, right } = this.model.window;
    return first + ((x - left) / (right - left)) * (last - first);
  }

  mark(key) {
    markScene(this.root, key);
  }

  /** Show the marks of an instruction, which is a line of the text. */
  pointAt(line) {
    for (const node of this.root.querySelectorAll(".dlc-mark")) {
      node.classList.toggle("dlc-pointed", line !== null && node.line === line);
    }
  }
}
