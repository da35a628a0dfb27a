/*
 * The drawing of a graph: frames, boxes and arrows as Python laid them out; the pointer and the keys.
 */

import { h, svg } from "./dom.js";
import { Minimap } from "./graph-minimap.js";
import { Zoom } from "./zoom.js";

const PAD_PX = 9, LINE_PX = 16;

export class GraphPicture {
  constructor(app) {
    this.app = app;
    this.items = new Map(); // by key, what the picture has: boxes, frames and arrows
    this.nodes = new Map(); // by key, the elements
    this.summary = h("p", { class: "dlc-summary" });
    this.frame = h("div", { class: "dlc-scroll" });
    this.hint = h("div", { class: "dlc-graph-hint", "aria-hidden": "true", hidden: true });
    this.howTo = h("figcaption", { class: "dlc-soft" });
    this.body = h("div", { class: "dlc-picture-body" },
      h("figure", { class: "dlc-figure" }, this.summary, this.frame));
    this.zoom = new Zoom(this.body);
    this.map = new Minimap(this.frame);
    const help = h("details", { class: "dlc-graph-help" },
      h("summary", { text: "How to read this", "data-lm-suppress-shortcuts": "true" }), this.howTo,
      h("p", { class: "dlc-soft", text: "Keys: ↓ and ↑ follow an arrow to what is next or before, ← and → go beside, Enter opens, Escape closes, Home is the first box." }));
    this.root = h("section", { class: "dlc-pane dlc-picture dlc-graph-picture", "aria-label": "Graph" },
      this.body, h("div", { class: "dlc-graph-foot" }, help, this.zoom.root), this.map.root, this.hint);
    this.frame.addEventListener("keydown", (event) => this.key(event));
    this.frame.addEventListener("pointerover", (event) => this.point(event));
    this.frame.addEventListener("pointerleave", () => this.tell(null));
    this.frame.addEventListener("focusin", (event) => this.tell(this.itemAt(event.target)));
    this.frame.addEventListener("focusout", () => this.tell(null));
    this.frame.addEventListener("click", (event) => this.click(event));
    this.frame.addEventListener("dblclick", (event) => this.open(this.itemAt(event.target)));
    this.frame.addEventListener("scroll", () => this.map.follow());
  }

  close() {
    this.map.close();
  }

  draw(model) {
    const isSame = this.model && model.after === this.model.after && model.level === this.model.level;
    const place = { left: this.frame.scrollLeft, top: this.frame.scrollTop };
    this.model = model;
    this.summary.textContent = model.summary;
    this.howTo.textContent = model.how_to_read;
    this.items.clear();
    this.nodes.clear();
    for (const item of [...model.frames, ...model.edges, ...model.nodes]) this.items.set(item.key, item);
    this.scene = svg("svg", { class: "dlc-scene", role: "group", viewBox: `0 0 ${model.width} ${model.height}`,
      width: model.width, height: model.height, "aria-label": `${model.title}: ${model.summary}` });
    this.scene.append(...model.frames.map((item) => this.note(item, drawFrame(item))),
      ...model.edges.map((item) => this.note(item, drawEdge(item))),
      ...model.nodes.map((item) => this.note(item, drawNode(item))));
    this.scene.whole = { width: model.width, height: model.height };
    this.scene.parts = null; // for `fit`
    this.frame.style.setProperty("--dlc-w", `${model.width}px`);
    this.frame.style.setProperty("--dlc-h", `${model.height}px`);
    this.frame.replaceChildren(this.scene);
    this.setStop(model.nodes[0]?.key);
    this.sides();
    this.zoom.apply();
    if (isSame) this.frame.scrollTo(place.left, place.top);
    this.map.draw(model, this.scene);
  }

  note(item, node) {
    node.dataset.key = item.key;
    this.nodes.set(item.key, node);
    return node;
  }

  /** Note the arrows of each box, from left to right. */
  sides() {
    this.out = new Map();
    this.into = new Map();
    for (const edge of this.model.edges) {
      for (const [map, key] of [[this.out, edge.source], [this.into, edge.target]]) {
        if (!map.has(key)) map.set(key, []);
        map.get(key).push(edge);
      }
    }
    const x = (key) => this.items.get(key).x;
    for (const edges of this.out.values()) edges.sort((a, b) => x(a.target) - x(b.target));
    for (const edges of this.into.values()) edges.sort((a, b) => x(a.source) - x(b.source));
  }

  // -- the pointer -----------------------------------------------------------------------------

  itemAt(node) {
    return this.items.get(node.closest?.("[data-key]")?.dataset.key) ?? null;
  }

  point(event) {
    this.tell(this.itemAt(event.target));
  }

  /** Say what is under the pointer or has the focus: the verdict of an arrow. */
  tell(item) {
    const text = item?.text && item.source ? item.text : "";
    this.hint.hidden = !text;
    const { each } = this.app.model.get("verdicts");
    const time = text && item.verdicts.length === 1 ? each[item.verdicts[0]]?.time : "";
    this.hint.textContent = time ? `${text} In all, ${time}.` : text;
  }

  click(event) {
    const item = this.itemAt(event.target);
    this.app.choose(item?.key ?? null);
    if (item) this.focus(item.key, false);
  }

  /** Open a closed box; close an open frame. */
  open(item) {
    const key = item && (item.is_closed || item.w && !item.lines ? item.key : null);
    if (key) this.app.send("turn", { key });
  }

  // -- the keyboard ----------------------------------------------------------------------------

  setStop(key) {
    for (const node of this.frame.querySelectorAll("[tabindex='0']")) node.setAttribute("tabindex", "-1");
    this.stop = key;
    this.nodes.get(key)?.setAttribute("tabindex", "0");
  }

  focus(key, isShown = true) {
    const node = this.nodes.get(key);
    if (!node) return;
    this.setStop(key);
    node.focus({ preventScroll: true });
    if (isShown) this.show(node);
  }

  key(event) {
    const item = this.itemAt(event.target);
    if (!item || event.altKey || event.ctrlKey || event.metaKey) return;
    const move = { ArrowDown: () => this.below(item), ArrowUp: () => this.above(item),
      ArrowLeft: () => this.beside(item, -1), ArrowRight: () => this.beside(item, 1),
      Home: () => this.model.nodes[0]?.key, End: () => this.model.nodes.at(-1)?.key }[event.key];
    const act = { Enter: () => this.enter(item), " ": () => this.enter(item), Escape: () => this.leave(item) }[event.key];
    if (!move && !act) return;
    event.preventDefault();
    event.stopPropagation();
    if (act) return act();
    const key = move();
    if (!key) return;
    this.app.choose(key);
    this.focus(key);
  }

  below(item) {
    if (item.source) return item.target;
    return this.out.get(item.key)?.[0]?.key ?? (item.lines ? null : this.firstIn(item));
  }

  above(item) {
    if (item.source) return item.source;
    return this.into.get(item.key)?.[0]?.key ?? null;
  }

  /** The next arrow of the same box, or the next box or frame at about the same height. */
  beside(item, step) {
    if (item.source) {
      const all = this.out.get(item.source), ways = all.length > 1 ? all : this.into.get(item.target);
      return ways[ways.indexOf(item) + step]?.key ?? null;
    }
    const middle = item.y + item.h / 2;
    const row = this.model.nodes.filter((each) => each.y <= middle && middle <= each.y + each.h && each !== item)
      .filter((each) => Math.sign(each.x - item.x) === step)
      .sort((a, b) => step * (a.x - b.x));
    return row[0]?.key ?? null;
  }

  firstIn(frame) {
    return this.model.nodes.find((each) => isInside(each, frame))?.key ?? null;
  }

  enter(item) {
    this.app.choose(item.key);
    if (item.is_closed) this.open(item);
    else this.app.detail.focus();
  }

  /** Close the innermost frame around a box; with none, choose nothing. */
  leave(item) {
    const around = this.model.frames.filter((frame) => frame === item || isInside(item, frame))
      .sort((a, b) => a.w * a.h - b.w * b.h)[0];
    if (!around) return this.app.choose(null);
    this.after = around.key;
    this.app.send("turn", { key: around.key });
  }

  // -- what is chosen, and what is found -------------------------------------------------------

  /** The key of what stands for another one: a kernel with one call is drawn as this call. */
  keyFor(key) {
    if (key === null || this.items.has(key)) return key;
    const [kind, number] = String(key).split(" ");
    if (kind !== "kernel") return null;
    return this.model.nodes.find((each) => each.kernel === Number(number))?.key ?? null;
  }

  mark(key) {
    for (const node of this.frame.querySelectorAll(".dlc-own, .dlc-near")) node.classList.remove("dlc-own", "dlc-near");
    this.nodes.get(key)?.classList.add("dlc-own");
    for (const edge of [...(this.out?.get(key) ?? []), ...(this.into?.get(key) ?? [])]) {
      this.nodes.get(edge.key).classList.add("dlc-near");
    }
    this.map.mark(this.items.get(key) ?? null);
  }

  reveal(key) {
    this.focus(key);
  }

  /** Scroll the frame, not the notebook, until an element is seen. */
  show(node) {
    const box = node.getBoundingClientRect(), frame = this.frame.getBoundingClientRect();
    if (box.left < frame.left || box.right > frame.right) {
      this.frame.scrollLeft += (box.left + box.right - frame.left - frame.right) / 2;
    }
    if (box.top < frame.top || box.bottom > frame.bottom) {
      this.frame.scrollTop += (box.top + box.bottom - frame.top - frame.bottom) / 2;
    }
  }

  find(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    this.hits = words.length ? this.model.nodes.filter((each) => words.every((word) => each.words.includes(word))) : [];
    const keys = new Set(this.hits.map(({ key }) => key));
    this.scene.classList.toggle("dlc-searching", words.length > 0);
    for (const each of this.model.nodes) this.nodes.get(each.key).classList.toggle("dlc-hit", keys.has(each.key));
    this.map.stress(keys);
    this.hit = -1;
    if (this.hits[0]) this.show(this.nodes.get(this.hits[0].key));
    return this.hits.length;
  }

  /** Go to the next box that was found; the search keeps the focus. */
  next(step) {
    if (!this.hits?.length) return;
    this.hit = (this.hit + step + this.hits.length) % this.hits.length;
    const { key } = this.hits[this.hit];
    this.app.choose(key);
    this.show(this.nodes.get(key));
  }
}

function isInside(box, frame) {
  return box !== frame && box.w && box.x >= frame.x && box.y >= frame.y
    && box.x + box.w <= frame.x + frame.w && box.y + box.h <= frame.y + frame.h;
}

/** An element of the picture that takes the focus, with its name. */
function part(kind, label, ...children) {
  return svg("g", { class: `dlc-graph-${kind}`, role: "button", tabindex: "-1", "aria-label": label,
    "data-lm-suppress-shortcuts": "true" }, ...children);
}

function words(x, y, text, isFirst) {
  const node = svg("text", { x, y, class: isFirst ? "dlc-mark dlc-name" : "dlc-mark dlc-soft" });
  node.textContent = text;
  return node;
}

function drawFrame(item) {
  const node = part("frame", `${item.kind} ${item.text}, open`,
    svg("rect", { x: item.x, y: item.y, width: item.w, height: item.h, rx: 3 }),
    words(item.x + 8, item.y + 15, item.text, false));
  node.dataset.kind = item.kind;
  return node;
}

function drawNode(item) {
  const { x, y, w, h: height, lines } = item;
  const node = part("node", `${item.kind} ${lines.join(", ")}${item.is_closed ? ", closed" : ""}`,
    svg("rect", { x, y, width: w, height, rx: 2 }),
    item.is_closed ? svg("rect", { class: "dlc-graph-inner", x: x + 3, y: y + 3, width: w - 6, height: height - 6, rx: 1 }) : null,
    ...lines.map((line, n) => words(x + PAD_PX, y + (n + 1) * LINE_PX, line, n === 0)));
  node.dataset.kind = item.kind;
  return node;
}

function drawEdge(item) {
  const isDashed = item.kind === "not fused"; // then its head is a path of its own, without dashes
  const node = part("edge", item.text, svg("path", { class: "dlc-graph-reach", d: item.d }),
    svg("path", { class: "dlc-graph-line", d: isDashed ? item.d : item.d + item.head }),
    isDashed ? svg("path", { class: "dlc-graph-head", d: item.head }) : null);
  node.dataset.kind = item.kind;
  return node;
}
