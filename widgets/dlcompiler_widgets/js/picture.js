/*
 * One picture at a time, by tabs. Most are scenes; one that moves has a module of its own.
 */

import { button, h, message } from "./dom.js";
import { BlockDrawer } from "./block.js";
import { flagArrows } from "./dependences.js";
import { SpaceDrawer } from "./space.js";
import { drawScene, markScene, tabs } from "./scene.js";

/** How to draw the models that are no scenes, by their `kind`: (model, app) → { root, mark }. */
const DRAWERS = {
  block: (model, app) => new BlockDrawer(model, app),
  space: (model, app) => new SpaceDrawer(model, app),
};

const ZOOM_STEP = 1.25, LEAST_ZOOM = 0.4, MOST_ZOOM = 4;

export class PicturePane {
  constructor(app) {
    this.app = app;
    this.body = h("div", { class: "dlc-picture-body", role: "tabpanel" });
    this.root = h("section", { class: "dlc-pane dlc-picture", "aria-label": "Picture" });
    this.scale = 1;
    this.zoomBar = h("div", { class: "dlc-zoom", role: "group", "aria-label": "Zoom" },
      button("zoom out", "−", "Smaller", () => this.zoom(this.scale / ZOOM_STEP)),
      button("zoom in", "+", "Larger", () => this.zoom(this.scale * ZOOM_STEP)),
      button("zoom reset", "1:1", "Original size", () => this.zoom(1)));
  }

  draw({ tab, tabs: all, kind, model, error }) {
    const head = all.length > 1
      ? tabs("Pictures", all, tab, (name) => this.app.send("picture", { tab: name })) : null;
    const drawn = model ? DRAWERS[kind]?.(model, this.app) : null;
    const isSame = this.tab === tab, isOpen = isSame && this.body.querySelector(".dlc-twin")?.open;
    this.tab = tab;
    this.drawn?.close?.();
    this.drawn = drawn ?? null;
    this.body.setAttribute("aria-label", all.find(({ name }) => name === tab)?.text ?? "Picture");
    if (error) this.body.replaceChildren(message(error));
    else if (kind === "off") {
      this.body.replaceChildren(h("p", { class: "dlc-soft", text: "Pictures are off. Open another tab to see one." }));
    }
    else {
      this.body.replaceChildren(
        drawn?.root ?? drawScene(model, (key) => this.app.choose(key), isSame ? this.body : null));
      const twin = this.body.querySelector(".dlc-twin");
      if (isOpen && twin) twin.open = true;
    }
    const scene = this.body.querySelector("svg.dlc-scene");
    this.root.replaceChildren(...[head, this.body, scene ? this.zoomBar : null].filter((n) => n));
    this.zoom(this.scale);
  }

  /** Show scenes at a scale; asks nothing of Python. */
  zoom(scale) {
    this.scale = Math.min(Math.max(scale, LEAST_ZOOM), MOST_ZOOM);
    const scene = this.body.querySelector("svg.dlc-scene");
    if (!scene) return;
    const { width, height } = scene.viewBox.baseVal;
    scene.setAttribute("width", width * this.scale);
    scene.setAttribute("height", height * this.scale);
  }

  mark(key) {
    if (this.drawn?.mark) this.drawn.mark(key);
    else markScene(this.body, key);
  }

  /** Stress the dependences of the loops that stand in the way of a move. */
  flag(conflicts) {
    flagArrows(this.body, conflicts);
  }
}
