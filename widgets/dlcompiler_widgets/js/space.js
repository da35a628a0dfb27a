/*
 * The iteration space, moving: which elements each iteration of the chosen loop touches, in order.
 *
 * Where it stands never leaves the page: stepping, playing and zooming ask nothing of Python.
 */

import { button, count, focusable, h, table } from "./dom.js";
import { Trail } from "./earlier.js";
import { nextReuse } from "./reuse.js";
import { loopValues, touched } from "./visits.js";
import { cellsOf, firstZoom, partOf, regionCells, windowOf, zoomsOf } from "./space-zoom.js";

const SPEEDS = [1, 4, 16, 64];
const DENSITY = 2; // dots of a canvas for a pixel of its grid: style sheets show it up to 2.5 times as large
const MOST_ACROSS = 3; // tensors in a line
const WRITTEN = "#D55E00", READ = "#0072B2";
const HOW_TO_READ = "How to read: each grid is a tensor, rows down and columns across. Filled: what "
  + "this iteration of the chosen loop touches; pale: what all earlier ones did. Zoom in to see the "
  + "steps of inner loops.";

export class SpaceDrawer {
  constructor(space, app) {
    this.space = space;
    this.app = app;
    this.step = 0;
    this.speed = 4;
    this.zoom = firstZoom(space);
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
      this.all = h("div", { class: "dlc-grids" }, ...this.grids.map(({ root }) => root)),
      h("figcaption", { class: "dlc-soft", text: HOW_TO_READ }),
      ...space.notes.map((text) => h("p", { class: "dlc-soft dlc-summary", text: `Note: ${text}.` })),
      h("details", { class: "dlc-twin" },
        h("summary", { text: "Show as table", "data-lm-suppress-shortcuts": "true" }), this.numbers));
    const grids = this.grids.length;
    this.all.style.setProperty("--dlc-across", grids > MOST_ACROSS ? Math.min(Math.ceil(grids / 2), MOST_ACROSS) : grids);
    this.go(0);
    repaintWithTheme(this);
  }

  controls() {
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.playing = button("space play", "▶ Play", "Play", () => this.play());
    const list = (key, label, items, chosen, pick) => focusable("select", { "aria-label": label,
      title: label, "data-key": key, on: { change: (event) => pick(Number(event.target.value)) } },
    ...items.map(([value, text]) => h("option", { value, text, selected: value === chosen })));
    this.faster = list("space speed", "Speed", SPEEDS.map((n) => [n, `${n}/s`]), this.speed,
      (speed) => { this.speed = speed; });
    return h("div", { class: "dlc-controls", role: "group", "aria-label": "Steps" },
      button("space back", "◀", "One step back", () => this.go(this.step - 1)),
      button("space on", "▶|", "One step on", () => this.go(this.step + 1)),
      ...(isStill ? [] : [this.playing, this.faster]),
      button("space reuse", "Next reuse", "Go to the next step that reads again what any earlier "
        + "step has read", () => this.toReuse()),
      h("label", {}, "Zoom ", list("space zoom", "Zoom", zoomsOf(this.space).map((text, n) => [n, text]),
        this.zoom, (zoom) => { this.zoom = zoom; this.go(this.step); })),
      this.scrub);
  }

  grid(tensor) {
    const isWritten = tensor.accesses.some((access) => access.is_write);
    const size = tensor.shape.map(count).join(" × ");
    const canvas = h("canvas", { role: "img", class: "dlc-canvas" });
    const detail = h("div", { class: "dlc-soft" }), slice = h("div", { class: "dlc-soft" });
    const root = h("div", { class: "dlc-grid-of-tensor" },
      h("div", {}, h("strong", { text: tensor.name }), h("span", { class: "dlc-soft", text: ` ${size}` })),
      detail, canvas, slice);
    return { tensor, canvas, detail, slice, root, verb: isWritten ? "written" : "read",
      color: isWritten ? WRITTEN : READ, trail: new Trail(this.space, tensor) };
  }

  /** Show a step; the trail is what all steps before it have touched. */
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
    const widest = Math.max(...this.grids.map(({ canvas }) => canvas.width));
    for (const { canvas } of this.grids) canvas.style.setProperty("--dlc-share", canvas.width / widest);
    this.numbers.replaceChildren(table({
      columns: ["tensor", "accessed as", "elements in this step", "first of them", "shown"], rows }));
  }

  show(grid) {
    const { tensor, canvas, slice, detail, trail } = grid;
    const seen = touched(this.space, tensor, this.step);
    const shown = windowOf(this.space, tensor, this.zoom, this.step);
    const before = trail.before(this.step);
    this.paint(grid, shown, cellsOf(seen, shown), regionCells(before, tensor.shape.length, shown));
    const number = seen.exact ? seen.points.length
      : seen.spans.reduce((product, span) => product * span.length, 1);
    const first = seen.exact ? seen.points[0] : seen.spans.map((span) => span[0]);
    const leading = tensor.shape.length > 2 && first ? first.slice(0, -2).join(", ") : "";
    slice.textContent = `${seen.exact || seen.isBox ? "" : "at most "}${count(number)} ${number === 1 ? "element" : "elements"}`
      + (leading ? `, at [${leading}, …]` : "")
      + (before.every(({ exact }) => exact) ? "" : "; pale: at most these");
    const part = partOf(tensor, shown), [down, across] = shown.block;
    const rank = tensor.shape.length;
    detail.textContent = [grid.verb, rank > 2 ? `last two of ${rank} dimensions` : "", part, down * across > 1 ? `cell = ${count(down)}×${count(across)}` : ""]
      .filter((text) => text).join(", ");
    canvas.setAttribute("aria-label", `${tensor.name}${part ? `, ${part}` : ""}: ${slice.textContent} touched`);
    const texts = [...new Set(tensor.accesses.map(({ text }) => text))].join(", ");
    return [tensor.name, texts, number, first ? `${tensor.name}[${first.join(", ")}]` : "none", part || "all"];
  }

  paint({ canvas, color }, { rows, columns, cell: size }, now, before) {
    const side = size * DENSITY;
    [canvas.width, canvas.height] = [columns * side + 1, rows * side + 1]; // it is empty then
    canvas.style.setProperty("--dlc-w", `${columns * size + 1}px`);
    const context = canvas.getContext("2d");
    const ink = getComputedStyle(this.app.root).color || "#888";
    const fill = (cell, alpha) => {
      context.globalAlpha = alpha;
      context.fillRect((cell % columns) * side, Math.floor(cell / columns) * side, side, side);
    };
    context.fillStyle = color;
    for (const cell of before) if (!now.has(cell)) fill(cell, 0.25);
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
    this.playing.textContent = "‖ Pause";
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

  /** Go to the next step that reads again what any earlier step has read. */
  toReuse() {
    this.pause();
    const found = nextReuse(this.space, this.step);
    if (found.step !== null) this.go(found.step);
    this.app.say({ tone: "info", text: reuseText(found) });
  }
}

function reuseText({ what, step, before, searched, isAll, isUnsure }) {
  if (step === null) {
    const where = isAll ? "after this step" : `in the next ${count(searched)} steps`;
    const more = isUnsure ? "; not all elements could be compared" : "";
    return `Reuse of what is read: none found ${where}${more}.`;
  }
  if (before === null) return `${what} was read more than ${count(searched)} steps before.`;
  return `${what} was read ${step - before === 1 ? "in the step" : `${count(step - before)} steps`} before.`;
}

/** Paint again when the host or the system changes its colours: a canvas keeps those it was painted with. */
function repaintWithTheme(drawer) {
  const still = new WeakRef(drawer), system = matchMedia("(prefers-color-scheme: dark)");
  const repaint = () => {
    const found = still.deref();
    if (found) return found.go(found.step);
    host.disconnect();
    return system.removeEventListener("change", repaint);
  };
  const host = new MutationObserver(repaint);
  host.observe(document.body, { attributes: true }); // JupyterLab's and VS Code's names of themes
  system.addEventListener("change", repaint);
}
