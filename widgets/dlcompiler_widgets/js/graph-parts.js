/*
 * Below the graph, by tabs: the decisions as a table, the passes, the arena, the times.
 */

import { button, focusable, h, heading } from "./dom.js";
import { drawScene, markScene } from "./scene.js";
import { showTabs } from "./tabs.js";

const TABS = [{ name: "verdicts", text: "Decisions" }, { name: "passes", text: "Passes" },
  { name: "arena", text: "Memory" }, { name: "times", text: "Time" }];
const ROWS = 80; // of the table at first, and with each "Show more"

export class PartsPane {
  constructor(app) {
    this.app = app;
    this.tab = "verdicts";
    this.rows = ROWS;
    this.tabs = h("div", { class: "dlc-headline" });
    this.body = h("div", { class: "dlc-graph-part", role: "tabpanel" });
    this.root = h("section", { class: "dlc-pane dlc-graph-parts", "aria-label": "Decisions, passes, memory and time" },
      this.tabs, this.body);
  }

  draw(model) {
    this.model = model;
    showTabs(this.tabs, "Below the graph", TABS, this.tab, (name) => { this.tab = name; this.draw(model); });
    const value = model.get(this.tab);
    if (this.drawn === value && this.drawnTab === this.tab) return;
    const isSame = this.drawnTab === this.tab;
    const scroll = isSame ? this.body.scrollTop : 0;
    const focused = this.body.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    [this.drawn, this.drawnTab] = [value, this.tab];
    this.body.setAttribute("aria-label", TABS.find(({ name }) => name === this.tab).text);
    const make = { verdicts: () => this.verdicts(value), passes: () => this.passes(value),
      arena: () => this.scene(value), times: () => this.scene(value) }[this.tab];
    this.body.replaceChildren(...make().filter(Boolean));
    this.body.scrollTop = scroll;
    if (focused) this.body.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    this.mark(this.app.chosen);
  }

  scene({ scene, message: text }) {
    if (!scene) return [h("p", { class: "dlc-soft", text })];
    return [drawScene(scene, (key) => key && this.app.reveal(key), null)];
  }

  /** The table twin of the picture: a row leads to its arrow. */
  verdicts({ table }) {
    if (!table.rows.length) return [h("p", { class: "dlc-soft", text: "No decision of fusion is known for this graph." })];
    const rows = table.rows.slice(0, this.rows), more = table.rows.length - rows.length;
    const row = (cells, number) => h("tr", { "data-verdict": number }, ...cells.map((cell, n) => (n ? h("td", { text: cell ?? "" })
      : h("td", {}, focusable("button", { type: "button", class: "dlc-graph-go", "data-key": `verdict ${number}`, text: cell,
        title: `${cell}: show this edge`, on: { click: () => this.go(number) } })))));
    return [h("div", { class: "dlc-scroll" }, h("table", { class: "dlc-table" },
      h("thead", {}, h("tr", {}, ...table.columns.map((text) => heading(text)))), h("tbody", {}, ...rows.map(row)))),
    more ? h("div", { class: "dlc-controls" }, button("more rows", "Show more", `Show more: ${more} rows are not shown`, () => this.more()),
      h("span", { class: "dlc-soft", text: `${more} more` })) : null];
  }

  more() {
    this.rows += ROWS;
    this.drawn = null;
    this.draw(this.model);
  }

  /** Choose the arrow of a verdict, or the box that hides it. */
  go(number) {
    const { edges } = this.model.get("picture");
    const edge = edges.find(({ verdicts }) => verdicts.includes(number));
    if (edge) this.app.reveal(edge.key);
    else this.app.say({ tone: "info", text: "This edge is inside a closed box: open it, or show Calls.", details: [] });
  }

  passes({ steps, at, facts, failure, message: text }) {
    if (!steps.length) return [h("p", { class: "dlc-soft", text: failure ? `The passes stopped: ${failure}` : text })];
    const names = ["as it was given", ...steps.map(({ name }, n) => `${n + 1}. ${name}`)];
    const said = h("output", { class: "dlc-graph-pass", text: names[at] });
    const scrub = focusable("input", { class: "dlc-scrub", type: "range", min: 0, max: steps.length, value: at,
      "data-key": "pass scrub", "aria-label": "The graph after a pass", "aria-valuetext": names[at],
      on: { input: () => { said.textContent = names[scrub.value]; },
        change: () => this.app.send("pass", { number: Number(scrub.value) }) } });
    const item = (step, n) => focusable("button", { type: "button", class: "dlc-graph-step", "data-key": `pass ${n}`,
      "aria-pressed": String(n === at), on: { click: () => this.app.send("pass", { number: n }) } },
    h("b", { text: names[n] }), h("span", { class: "dlc-soft", text: step ? `${step.effect}; took ${step.time} here` : "before all passes" }));
    return [h("div", { class: "dlc-head" }, h("label", {}, h("span", { class: "dlc-soft", text: "The graph after: " }), scrub), said),
      h("div", { class: "dlc-graph-passes" },
        h("div", { class: "dlc-graph-steps", role: "group", "aria-label": "Passes" }, item(null, 0), ...steps.map((step, n) => item(step, n + 1))),
        h("div", { class: "dlc-graph-did" },
          failure ? h("p", { text: `The passes stopped: ${failure}` }) : null,
          facts.length ? h("dl", { class: "dlc-graph-said" }, ...facts.flatMap(([label, value]) => [
            h("dt", { text: label }), h("dd", { text: value })])) : h("p", { class: "dlc-soft", text: "This step changed nothing." })))];
  }

  mark(key) {
    const item = this.app.item(key);
    const kernel = item?.kernel;
    markScene(this.body, kernel === null || kernel === undefined ? null : `kernel ${kernel}`);
    const own = new Set(item?.verdicts ?? []);
    for (const row of this.body.querySelectorAll("[data-verdict]")) {
      row.classList.toggle("dlc-own", own.has(Number(row.dataset.verdict)));
    }
  }
}
