/*
 * A picture as Python laid it out: marks with places, words and keys. The static SVG has the same.
 */

import { focusable, h, refill, svg, table, twin } from "./dom.js";

const SHAPES = {
  rect: ({ x, y, w, h: height }) => svg("rect", { x, y, width: w, height, rx: 2 }),
  line: ({ x, y, x2, y2 }) => svg("line", { x1: x, y1: y, x2, y2 }),
  path: ({ d }) => svg("path", { d }),
  circle: ({ x, y, r }) => svg("circle", { cx: x, cy: y, r }),
  dots: (mark) => svg("path", { d: dotsPath(mark) }),
  text: ({ x, y, text, anchor }) => {
    const node = svg("text", { x, y, "text-anchor": anchor ?? "start" });
    node.textContent = text;
    return node;
  },
};

/** How a sign is drawn from its place and its size; `dots_path` in `scene.py` does the same. */
const GLYPHS = {
  disc: (x, y, r) => `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 -${2 * r} 0`,
  ring: (x, y, r) => GLYPHS.disc(x, y, r),
  tick: (x, y, r) => `M${x} ${y - r}v${2 * r}`,
  cross: (x, y, r) => `M${x - r} ${y - r}l${2 * r} ${2 * r}m0 -${2 * r}l-${2 * r} ${2 * r}`,
  diamond: (x, y, r) => `M${x} ${y - r}l${r} ${r}l-${r} ${r}l-${r} -${r}z`,
};

function dotsPath({ glyph, xy, r = 3 }) {
  let path = "";
  for (let n = 0; n < xy.length; n += 2) path += GLYPHS[glyph](xy[n], xy[n + 1], r);
  return path;
}

const REACH_PX = 12;

/** The key of the sign next to the pointer, of all signs of a picture; null if none is near. */
function keyNear(picture, event) {
  const { a, d, e, f } = picture.getScreenCTM();
  const x = (event.clientX - e) / a, y = (event.clientY - f) / d;
  let found = null, least = REACH_PX;
  for (const node of picture.querySelectorAll(".dlc-dots")) {
    const { xy, keys } = node.signs ?? { keys: [] };
    keys.forEach((key, n) => {
      const distance = Math.hypot(xy[2 * n] - x, xy[2 * n + 1] - y);
      if (distance < least) [found, least] = [key, distance];
    });
  }
  return found;
}

/** Let small signs be pointed at and clicked, also next to them. */
function linkSigns(picture, frame, choose) {
  picture.onpointermove = (event) => {
    const key = keyNear(picture, event);
    picture.style.cursor = key ? "pointer" : "";
    if (key) frame.setAttribute("title", key);
    else frame.removeAttribute("title");
  };
  picture.onclick = (event) => {
    const key = event.target.keys ? null : keyNear(picture, event);
    if (key) choose(key);
  };
}

/**
 * Draw a scene; `choose` is called with the key of a mark that is clicked, and the mark. The marks that the
 * picture `before` had already are taken from it.
 */
export function drawScene(scene, choose, before = null) {
  const picture = before?.querySelector("svg.dlc-scene") ?? svg("svg");
  const attributes = {
    viewBox: `0 0 ${scene.width} ${scene.height}`, width: scene.width, height: scene.height,
    role: "img", "aria-label": `${scene.title}: ${scene.summary}`, class: "dlc-scene",
  };
  for (const [name, value] of Object.entries(attributes)) picture.setAttribute(name, value);
  refill(picture, scene.marks, (mark) => drawMark(mark, choose));
  picture.whole = { width: scene.width, height: scene.height };
  picture.parts = scene.parts ?? null; // `fit` puts them below each other
  const frame = focusable("div", { class: "dlc-scroll", tabindex: 0, role: "group",
    "aria-label": `${scene.title}, the picture` }, picture);
  frame.style.setProperty("--dlc-w", `${scene.width}px`); // what a pane fits it by
  frame.style.setProperty("--dlc-h", `${scene.height}px`);
  if (scene.marks.some(({ shape }) => shape === "dots")) linkSigns(picture, frame, choose);
  return h("figure", { class: "dlc-figure" },
    h("p", { class: "dlc-summary", text: scene.summary }), frame,
    h("figcaption", { class: "dlc-soft", text: `How to read: ${scene.how_to_read}` }),
    twin(() => table(scene.table)));
}

/** Marks that have words on them: their colour is mixed with the ground. */
const TINTED = ["box", "node"];

export function drawMark(mark, choose) {
  const node = SHAPES[mark.shape](mark);
  node.setAttribute("class", `dlc-mark dlc-${mark.role}`);
  if (!TINTED.includes(mark.role)) node.style.fill = mark.fill ?? "";
  else if (mark.fill?.startsWith("#")) node.style.setProperty("--dlc-fill", mark.fill);
  if (mark.stroke) node.style.stroke = mark.stroke;
  if (mark.dash) node.style.strokeDasharray = mark.dash;
  if (mark.title) {
    const title = svg("title");
    title.textContent = mark.title;
    node.append(title);
  }
  if (mark.line) node.line = mark.line;
  if (mark.shape === "dots") node.signs = { xy: mark.xy, keys: mark.keys ?? [] };
  else if (mark.keys?.length) {
    node.keys = mark.keys;
    node.classList.add("dlc-link");
    node.addEventListener("click", () => choose(mark.keys[0], mark));
  }
  return node;
}

/** Show which marks belong to the chosen loop. */
export function markScene(root, key) {
  for (const node of root.querySelectorAll(".dlc-mark")) {
    node.classList.toggle("dlc-own", key !== null && (node.keys ?? []).includes(key));
  }
}
