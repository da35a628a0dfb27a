/*
 * The pictures of the tuning dashboard: the curve, and beside it one of the others, by tabs.
 */

import { focusable, h, message } from "./dom.js";
import { drawScene } from "./scene.js";
import { tabs } from "./tabs.js";
import { unpack } from "./shipment.js";

/** A choice of a few words, of which one holds. */
function choice(label, items, chosen, choose) {
  return h("span", { class: "dlc-modes", role: "group", "aria-label": label },
    ...items.map(([name, text]) => focusable("button", {
      type: "button", "data-key": `${label} ${name}`, text,
      "aria-pressed": String(name === chosen), on: { click: () => choose(name) } })));
}

function select(key, label, items, chosen, choose) {
  const node = focusable("select", { "data-key": key, "aria-label": label,
    on: { change: () => choose(node.value) } },
  ...items.map(([value, text]) => h("option", { value, text, selected: value === chosen })));
  return h("label", { class: "dlc-tuning-select" }, h("span", { class: "dlc-soft", text: label }),
    node);
}

/** A scene that changes several times a second; the table that was opened stays open. */
class ScenePane {
  constructor(app, name, label) {
    this.app = app;
    this.tools = h("div", { class: "dlc-head" });
    this.body = h("div", { class: "dlc-tuning-body" });
    this.root = h("section", { class: `dlc-pane dlc-tuning-${name}`, "aria-label": label },
      this.tools, this.body);
  }

  /** The width that a picture may have, in pixels. */
  room() {
    const { paddingLeft, paddingRight } = getComputedStyle(this.root);
    return this.root.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
  }

  drawTools(key, make) {
    if (key === this.toolsKey) return;
    this.toolsKey = key;
    this.tools.replaceChildren(...make().filter((each) => each));
  }

  drawBody(value, base, isSame) {
    if (value.message || !value.scene) {
      this.body.replaceChildren(message(value.message ?? { text: "", tone: "info" }));
      return;
    }
    const marks = unpack(base, value);
    if (!marks) return;
    const before = isSame ? this.body : null;
    const isOpen = before?.querySelector(".dlc-twin")?.open;
    const scroll = before?.querySelector(".dlc-scroll");
    const focused = document.activeElement;
    const place = scroll && { left: scroll.scrollLeft, isFocused: scroll === focused,
      summary: focused?.tagName === "SUMMARY" && this.body.contains(focused) };
    const drawn = drawScene({ ...value.scene, marks }, (key) => this.app.choose(key), before);
    this.body.replaceChildren(drawn);
    if (isOpen) drawn.querySelector(".dlc-twin").open = true;
    if (!place) return;
    const fresh = drawn.querySelector(".dlc-scroll");
    fresh.scrollLeft = place.left;
    if (place.isFocused) fresh.focus({ preventScroll: true });
    if (place.summary) drawn.querySelector("summary").focus({ preventScroll: true });
  }
}

export class CurvePane extends ScenePane {
  constructor(app) {
    super(app, "curve", "Best so far");
  }

  draw(value, base) {
    const { against, shown } = value;
    this.drawTools(`${against} ${shown}`, () => [
      h("h3", { text: "Best so far" }),
      choice("Against", [["trials", "trials"], ["seconds", "seconds"]], against,
        (name) => this.app.send("axis", { against: name })),
      choice("Shown", [["rate", "GFLOP/s"], ["time", "time (log)"]], shown,
        (name) => this.app.send("axis", { shown: name }))]);
    this.drawBody(value, base, true);
  }
}

export class OpenPicture extends ScenePane {
  constructor(app) {
    super(app, "picture", "Picture");
    this.body.setAttribute("role", "tabpanel");
  }

  draw(value, base) {
    const { tab, knobs, across, up } = value;
    const isSame = this.tab === tab;
    this.tab = tab;
    const name = value.tabs.find((each) => each.name === tab)?.text ?? "Picture";
    this.body.setAttribute("aria-label", name);
    const map = (side, chosen) => select(`map ${side}`, side,
      [["", "all knobs at once"], ...knobs.map((knob) => [knob, knob])], chosen,
      (knob) => this.app.send("map", { [side]: knob }));
    this.drawTools(JSON.stringify([tab, knobs, across, up]), () => [
      tabs("Pictures", value.tabs, tab, (name) => this.app.send("tab", { name })),
      ...(knobs.length ? [map("across", across), map("up", up)] : [])]);
    this.drawBody(value, base, isSame);
  }
}
