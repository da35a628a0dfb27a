/*
 * The dependence that forbids a refused move, drawn beside its reason.
 */

import { h, svg } from "./dom.js";
import { drawMark } from "./scene.js";

/** A small picture with the sentence under it; null without a dependence. */
export function conflictPicture(conflict) {
  if (!conflict) return null;
  const { scene, words, vector, loops, example } = conflict;
  const names = loops.map((key) => key.slice(key.indexOf("/") + 1)).join(", ");
  return h("div", { class: "dlc-way" },
    svg("svg", { viewBox: `0 0 ${scene.width} ${scene.height}`, width: scene.width,
      height: scene.height, role: "img", class: "dlc-scene",
      "aria-label": `${scene.title}: ${scene.summary}` },
    ...scene.marks.map((mark) => drawMark({ ...mark, keys: [] }, () => {}))),
    h("p", { class: "dlc-soft", text: `${words}. Distance of (${names}): (${vector.join(", ")}).`
      + (example ? ` For example, ${example}.` : "") }));
}

/** Stress the arrows of the loops that stand in the way of a move; none for no keys. */
export function flagArrows(root, keys) {
  const arrows = [...root.querySelectorAll(".dlc-scene .dlc-curve")].filter((node) => node.keys);
  for (const node of arrows) {
    node.classList.toggle("dlc-in-way", node.keys.some((key) => keys.includes(key)));
  }
}
