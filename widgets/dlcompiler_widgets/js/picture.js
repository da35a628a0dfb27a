/*
 * One picture at a time, by tabs. Most are scenes; one that moves has a module of its own.
 */

import { h, message } from "./dom.js";
import { BlockDrawer } from "./block.js";
import { CyclesDrawer } from "./cycles.js";
import { StatesDrawer } from "./ladder.js";
import { flagArrows } from "./dependences.js";
import { SpaceDrawer } from "./space.js";
import { drawScene, markScene } from "./scene.js";
import { showTabs } from "./tabs.js";
import { Zoom } from "./zoom.js";

/** How to draw the models that are no scenes, by their `kind`: (model, app, before) → { root, mark }. */
const DRAWERS = {
  block: (model, app) => new BlockDrawer(model, app),
  cycles: (model, app, before) => new CyclesDrawer(model, app, before),
  space: (model, app) => new SpaceDrawer(model, app),
  states: (model, app) => new StatesDrawer(model, app),
};

export class PicturePane {
  constructor(app) {
    this.app = app;
    this.body = h("div", { class: "dlc-picture-body", role: "tabpanel" });
    this.tabs = h("div", { class: "dlc-headline" });
    this.zoom = new Zoom(this.body);
    this.headline = this.tabs;
    this.root = h("section", { class: "dlc-pane dlc-picture", "aria-label": "Picture" }, this.body,
      this.zoom.root);
  }

  draw({ tab, tabs: all, kind, model, error }) {
    showTabs(this.tabs, "Pictures", all, tab, (name) => this.app.send("picture", { tab: name }));
    const isSame = this.tab === tab;
    const drawn = model ? DRAWERS[kind]?.(model, this.app, isSame ? this.body : null) : null;
    const isOpen = isSame && this.body.querySelector(".dlc-twin")?.open;
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
    this.zoom.apply();
  }

  mark(key) {
    if (this.drawn?.mark) this.drawn.mark(key);
    else markScene(this.body, key);
  }

  /** Show an instruction of an accelerator, which is a line of the text; null shows none. */
  pointAt(line) {
    this.drawn?.pointAt?.(line);
  }

  /** Stress the dependences of the loops that stand in the way of a move. */
  flag(conflicts) {
    flagArrows(this.body, conflicts);
  }
}
