/*
 * The curve of a tuning run: draws what arrives. Nothing is decided here; all text goes through
 * textContent.
 */

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 720, HEIGHT = 240, LEFT = 48, RIGHT = 12, TOP = 14, BOTTOM = 34;
const BASE = HEIGHT - BOTTOM;
const SPEAK_EVERY_MS = 5000;

function svg(tag, attributes, text = "") {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.textContent = text;
  return node;
}

function h(tag, className, text = "") {
  const node = document.createElement(tag);
  node.className = className;
  node.textContent = text;
  return node;
}

class Curve {
  constructor(model, el, signal) {
    this.model = model;
    this.root = h("div", "dlc-tuning");
    this.head = h("div", "dlc-tuning-head");
    this.title = h("strong", "");
    this.state = h("span", "dlc-tuning-state");
    this.head.append(this.title, this.state);
    this.facts = h("dl", "dlc-tuning-facts");
    this.note = h("p", "dlc-tuning-note");
    this.picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
    this.grid = svg("g", { class: "dlc-tuning-grid" });
    this.dots = svg("path", { class: "dlc-tuning-dots" });
    this.fails = svg("path", { class: "dlc-tuning-fails" });
    this.line = svg("path", { class: "dlc-tuning-line" });
    this.picture.append(this.grid, this.dots, this.fails, this.line);
    this.help = h("p", "dlc-tuning-help",
      "How to read: each dot is a trial, the line is the best so far (higher is faster); marks at "
      + "the bottom are trials that failed.");
    this.spoken = h("div", "dlc-tuning-spoken");
    this.spoken.setAttribute("aria-live", "polite");
    this.lastSpoken = -SPEAK_EVERY_MS;
    this.root.append(this.head, this.facts, this.note, this.picture, this.help, this.spoken);
    el.append(this.root);

    const ask = () => this.ask();
    for (const name of ["model", "base", "delta"]) model.on(`change:${name}`, ask);
    signal?.addEventListener("abort", () => {
      for (const name of ["model", "base", "delta"]) model.off(`change:${name}`, ask);
      cancelAnimationFrame(this.frame);
      clearTimeout(this.speaking);
    });
    this.draw();
  }

  /** Draw once for all changes that arrive together. */
  ask() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.draw());
  }

  draw() {
    const view = this.model.get("model");
    const delta = this.model.get("delta");
    const base = this.model.get("base");
    if (!view.title) return;
    const points = base.slice(0, delta.from ?? 0).concat(delta.points ?? []);
    this.title.textContent = view.title;
    this.state.textContent = view.state;
    this.root.dataset.state = view.state;
    this.note.textContent = view.note ? `Note: ${view.note}` : "";
    this.picture.setAttribute("aria-label", `Tuning of ${view.title}: ${view.text}`);
    this.showFacts(view);
    this.showPoints(points, view);
    this.speak(view);
  }

  showFacts(view) {
    const failed = view.counts.filter(([name]) => name !== "ok");
    const facts = [
      ["trials", `${view.trials} of ${view.total}`],
      ["best", view.best ? `${view.best.gflops} GFLOP/s (${view.best.time})` : "none yet"],
      ["failed", failed.map(([name, count]) => `${count} ${name}`).join(", ") || "none"],
      ["speed", `${view.rate.toFixed(1)} trials/s`],
      ["config", view.best ? view.best.config : "–"],
    ];
    this.facts.replaceChildren(...facts.flatMap(([name, value]) => [
      h("dt", "", name), h("dd", `dlc-tuning-${name}`, value),
    ]));
  }

  showPoints(points, view) {
    const last = Math.max(view.total - 1, points.length - 1, 1);
    const x = (n) => (LEFT + (WIDTH - LEFT - RIGHT) * n / last).toFixed(1);
    const y = (rate) => (BASE - (BASE - TOP) * rate / view.top).toFixed(1);
    let dots = "", fails = "", line = "", best = 0;
    points.forEach((rate, n) => {
      if (rate === null) fails += `M${x(n)} ${BASE}v-6`;
      else dots += `M${x(n)} ${y(rate)}h0`;
      if (rate !== null && rate > best) {
        line += line ? `H${x(n)}V${y(rate)}` : `M${x(n)} ${y(rate)}`;
        best = rate;
      }
    });
    if (line) line += `H${x(points.length - 1)}`;
    this.dots.setAttribute("d", dots);
    this.fails.setAttribute("d", fails);
    this.line.setAttribute("d", line);
    const scale = `${view.top} ${view.total}`;
    if (scale !== this.scale) this.showGrid(view);
    this.scale = scale;
  }

  showGrid(view) {
    const parts = [];
    for (let step = 0; step < 5; step += 1) {
      const height = BASE - (BASE - TOP) * step / 4;
      const value = Number((view.top * step / 4).toPrecision(4));
      parts.push(
        svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: height, y2: height }),
        svg("text", { x: LEFT - 6, y: height + 4, "text-anchor": "end" }, String(value)),
      );
    }
    parts.push(
      svg("text", { x: LEFT, y: HEIGHT - 12 }, "GFLOP/s by trial"),
      svg("text", { x: WIDTH - RIGHT, y: HEIGHT - 12, "text-anchor": "end" },
        `trial ${view.total - 1}`),
    );
    this.grid.replaceChildren(...parts);
  }

  /** Tell a screen reader, but not more often than it can be listened to. */
  speak(view) {
    const isOver = !["running", "stopping"].includes(view.state);
    const wait = this.lastSpoken + SPEAK_EVERY_MS - performance.now();
    clearTimeout(this.speaking);
    if (isOver || wait <= 0) {
      this.spoken.textContent = view.text;
      this.lastSpoken = performance.now();
    } else {
      this.speaking = setTimeout(() => this.speak(this.model.get("model")), wait);
    }
  }
}

export default {
  render({ model, el, signal }) {
    new Curve(model, el, signal);
  },
};
