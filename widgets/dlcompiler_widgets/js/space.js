/*
 * The iteration space, moving: which elements each iteration of the chosen loop touches, in order.
 *
 * Where it stands never leaves the page: stepping and playing ask nothing of Python.
 */

import { button, count, focusable, h, table } from "./dom.js";
import { cellsOf, loopValues, touched } from "./visits.js";

const SPEEDS = [1, 4, 16, 64];
const DENSITY = 2; // dots of a canvas for a pixel of its grid: style sheets show it up to twice as large
const MOST_REMEMBERED = 4096;
const MOST_SEARCHED = 20_000;
const WRITTEN = "#D55E00", READ = "#0072B2";
const HOW_TO_READ = "How to read: each grid is a tensor, rows down and columns across. Filled: what "
  + "this iteration of the chosen loop touches; pale: what earlier ones did.";

export class SpaceDrawer {
  constructor(space, app) {
    this.space = space;
    this.app = app;
    this.step = 0;
    this.speed = 4;
    this.where = h("p", { class: "dlc-summary", "aria-live": "polite" });
    this.grids = space.tensors.map((tensor) => this.grid(tensor));
    this.scrub = h("input", {
      type: "range", min: 0, max: Math.max(space.steps - 1, 0), value: 0, class: "dlc-scrub",
      "data-key": "space step", "aria-label": "Step",
      on: { input: (event) => this.go(Number(event.target.value)) },
    });
    this.numbers = h("div");
    this.root = h("figure", { class: "dlc-figure" },
      this.where, this.controls(),
      h("div", { class: "dlc-grids" }, ...this.grids.map(({ root }) => root)),
      h("figcaption", { class: "dlc-soft", text: HOW_TO_READ }),
      ...space.notes.map((text) => h("p", { class: "dlc-soft", text: `Note: ${text}.` })),
      h("details", { class: "dlc-twin" },
        h("summary", { text: "Show as table", "data-lm-suppress-shortcuts": "true" }), this.numbers));
    this.go(0);
  }

  controls() {
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.playing = button("space play", "▶ Play", "Play", () => this.play());
    this.faster = focusable("select", { "aria-label": "Speed", "data-key": "space speed",
      on: { change: (event) => { this.speed = Number(event.target.value); } } },
    ...SPEEDS.map((n) => h("option", { value: n, text: `${n}/s`, selected: n === this.speed })));
    return h("div", { class: "dlc-controls", role: "group", "aria-label": "Steps" },
      button("space back", "◀", "One step back", () => this.go(this.step - 1)),
      button("space on", "▶|", "One step on", () => this.go(this.step + 1)),
      ...(isStill ? [] : [this.playing, this.faster]),
      button("space reuse", "First reuse", "Go to the next step that reads again what an earlier "
        + "step, but not the one just before it, had read", () => this.toReuse()),
      this.scrub);
  }

  grid(tensor) {
    const { rows, columns, cell, block: [down, across] } = tensor.grid;
    const isWritten = tensor.accesses.some((access) => access.is_write);
    const size = tensor.shape.map(count).join(" × ");
    const detail = (isWritten ? "written" : "read")
      + (down * across > 1 ? `, cell = ${count(down)}×${count(across)}` : "");
    const canvas = h("canvas", { width: columns * cell * DENSITY + 1, height: rows * cell * DENSITY + 1,
      role: "img", class: "dlc-canvas" });
    canvas.style.setProperty("--dlc-w", `${columns * cell + 1}px`);
    canvas.style.setProperty("--dlc-h", `${rows * cell + 1}px`);
    const slice = h("div", { class: "dlc-soft" });
    const root = h("div", { class: "dlc-grid-of-tensor" },
      h("div", {}, h("strong", { text: tensor.name }), h("span", { class: "dlc-soft", text: ` ${size}` })),
      h("div", { class: "dlc-soft", text: detail }), canvas, slice);
    return { tensor, canvas, slice, root, color: isWritten ? WRITTEN : READ, trail: new Map() };
  }

  /** Show a step; the trail is what the steps before it have touched, as far as they were shown. */
  go(step) {
    this.step = Math.min(Math.max(step, 0), Math.max(this.space.steps - 1, 0));
    const { loops, depth, steps, stage } = this.space;
    const values = loopValues(this.space, this.step);
    const where = loops.slice(0, depth).map(({ name }, n) => `${name} = ${values[n]}`).join(", ");
    this.where.textContent = depth
      ? `One iteration of ${loops[depth - 1].name}: step ${count(this.step + 1)} of ${count(steps)}, at ${where}.`
      : `${stage} is one statement without loops.`;
    this.scrub.value = this.step;
    const rows = this.grids.map((grid) => this.show(grid));
    this.numbers.replaceChildren(table({
      columns: ["tensor", "accessed as", "elements in this step", "first of them"], rows }));
  }

  show(grid) {
    const { tensor, canvas, slice, trail } = grid;
    const seen = touched(this.space, tensor, this.step);
    const now = cellsOf(tensor, seen);
    for (const [cell, step] of trail) if (step >= this.step) trail.delete(cell);
    this.paint(grid, now);
    for (const cell of now) if (!trail.has(cell)) trail.set(cell, this.step);
    if (trail.size > MOST_REMEMBERED) trail.clear();
    const number = seen.exact ? seen.points.length
      : seen.spans.reduce((product, span) => product * span.length, 1);
    const first = seen.exact ? seen.points[0] : seen.spans.map((span) => span[0]);
    const leading = tensor.shape.length > 2 && first ? first.slice(0, -2).join(", ") : "";
    slice.textContent = `${seen.exact || seen.isBox ? "" : "at most "}${count(number)} ${number === 1 ? "element" : "elements"}`
      + (leading ? `, at [${leading}, …]` : "");
    canvas.setAttribute("aria-label", `${tensor.name}: ${slice.textContent} touched`);
    const texts = [...new Set(tensor.accesses.map(({ text }) => text))].join(", ");
    return [tensor.name, texts, number, first ? `${tensor.name}[${first.join(", ")}]` : "none"];
  }

  paint({ tensor, canvas, color, trail }, now) {
    const context = canvas.getContext("2d");
    const { rows, columns, cell } = tensor.grid, side = cell * DENSITY;
    const ink = getComputedStyle(this.app.root).color || "#888";
    context.clearRect(0, 0, canvas.width, canvas.height);
    const fill = (cell, alpha) => {
      context.globalAlpha = alpha;
      context.fillRect((cell % columns) * side, Math.floor(cell / columns) * side, side, side);
    };
    context.fillStyle = color;
    for (const cell of trail.keys()) fill(cell, 0.25);
    for (const cell of now) fill(cell, 1);
    context.globalAlpha = 0.35;
    context.strokeStyle = ink;
    context.lineWidth = 1;
    context.beginPath();
    for (let row = 0; row <= rows; row += 1) {
      context.moveTo(0, row * side + 0.5);
      context.lineTo(columns * side, row * side + 0.5);
    }
    for (let column = 0; column <= columns; column += 1) {
      context.moveTo(column * side + 0.5, 0);
      context.lineTo(column * side + 0.5, rows * side);
    }
    context.stroke();
    context.globalAlpha = 1;
    context.lineWidth = 1.5;
    for (const cell of now.size <= 256 ? now : []) {
      context.strokeRect((cell % columns) * side + 0.5, Math.floor(cell / columns) * side + 0.5, side, side);
    }
  }

  play() {
    if (this.timer) return this.pause();
    this.playing.textContent = "❚❚ Pause";
    this.playing.setAttribute("aria-label", "Pause");
    const tick = () => {
      if (!this.root.isConnected || this.step >= this.space.steps - 1) return this.pause();
      this.go(this.step + 1);
      this.timer = setTimeout(tick, 1000 / this.speed);
      return undefined;
    };
    this.timer = setTimeout(tick, 1000 / this.speed);
    return undefined;
  }

  pause() {
    clearTimeout(this.timer);
    this.timer = null;
    this.playing.textContent = "▶ Play";
    this.playing.setAttribute("aria-label", "Play");
  }

  close() {
    clearTimeout(this.timer);
  }

  /** Go to the next step that reads again what an earlier step, but not the last one, has read. */
  toReuse() {
    this.pause();
    const reads = this.space.tensors.filter((t) => !t.accesses.some((access) => access.is_write));
    const last = new Map();
    const end = Math.min(this.space.steps, MOST_SEARCHED);
    for (let step = 0; step < end; step += 1) {
      for (const tensor of reads) {
        const seen = touched(this.space, tensor, step);
        for (const point of seen.exact ? seen.points : seen.spans) {
          const id = `${tensor.name} ${point.slice(0, 64).join()}`;
          const before = last.get(id);
          if (before !== undefined && before < step - 1 && step > this.step) {
            this.go(step);
            const what = seen.exact ? `${tensor.name}[${point.join(", ")}]` : `part of ${tensor.name}`;
            this.app.say({ tone: "info", text: `${what} was read ${count(step - before)} steps before.` });
            return;
          }
          last.set(id, step);
        }
      }
    }
    const none = end < this.space.steps ? `none in the first ${count(end)} steps` : "none after this step";
    this.app.say({ tone: "info", text: `Reuse of what is read: ${none}.` });
  }
}
