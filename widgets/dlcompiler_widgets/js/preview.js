/*
 * What a move would do: why it is refused and what to do instead, its metrics before and after, and
 * the loop nest that it leads to. All of it is words and rows that Python made.
 */

import { button, count, focusable, h, heading, paint } from "./dom.js";

const HEADS = { illegal: "not possible", done: "changes nothing",
  pending: "possible, but a later step must follow" };
const KINDS = { semantic: ", it would change the result", limit: ", a limit of the target or this version" };
const SIGNS = { same: "", added: "+", removed: "−", changed: "~", moved: "↕" };
const SPOKEN = { same: "", added: "added: ", removed: "removed: ", changed: "changed: ", moved: "moved: " };
const INDENT = 10;

/** The line that says what a move is: of the palette's item at once, of the answer when it comes. */
export function reasons(item, { name, about = "" }) {
  const lines = { because: item.because, got: item.got, hint: item.hint };
  const text = item.reason
    ? ` ${HEADS[item.status] ?? ""}${KINDS[item.kind] ?? ""}: ${item.reason}` : ` ${about}`;
  return [
    h("p", {}, h("strong", { text: name }), h("span", { text })),
    ...Object.entries(lines).filter(([, value]) => value).map(([label, value]) =>
      h("p", { class: "dlc-soft" }, h("b", { text: `${label} ` }), h("span", { text: value }))),
  ];
}

/** The button that takes the nearest change that is legal, or has no tail; null without one. */
export function nearestButton({ nearest, status }, take) {
  if (!nearest) return null;
  const head = status === "illegal" ? "try" : "or";
  return h("p", { class: "dlc-nearest" }, h("b", { text: `${head} ` }),
    button("nearest", nearest.text, `${head}: ${nearest.text}`,
      () => take({ steps: nearest.steps, start: nearest.start })));
}

/** The metrics before and after a step, with bars; below, the models of those that are predicted. */
export function metricTable({ metrics = [], models = [], unknown = "" }) {
  const why = unknown ? h("p", { class: "dlc-soft", text: `Some figures are not known: ${unknown}.` }) : null;
  if (!metrics.length) return [why];
  const heads = ["", "now", "after", "change"].map((text) => heading(text));
  const table = h("table", { class: "dlc-table dlc-metrics" },
    h("caption", { class: "dlc-unseen", text: "What changes" }),
    h("thead", {}, h("tr", {}, ...heads)),
    h("tbody", {}, ...metrics.map(metricRow)));
  const notes = models.map(({ of, text }) =>
    h("p", { class: "dlc-soft dlc-model", text: `${of} predicted by ${text}` }));
  return [why, table, ...notes];
}

function metricRow({ name, before, after, kind, change, bars = [] }) {
  const isSame = change === "same";
  return h("tr", { class: isSame ? "dlc-soft" : null },
    h("th", { scope: "row", text: name, title: kind }),
    h("td", { class: "dlc-number", text: before }),
    h("td", { class: "dlc-number", text: after }),
    h("td", { class: "dlc-number" }, h(isSame ? "span" : "b", { text: change || "–" }),
      bars.length && !isSame ? pair(bars) : null));
}

/** Two bars, before over after, as parts of the longer one. */
function pair(bars) {
  return h("span", { class: "dlc-pair", "aria-hidden": "true" },
    ...bars.map((share) => h("span", { style: { width: `${Math.max(share * 100, 2)}%` } })));
}

/** The nest that a step leads to, with what is added, removed, changed and moved. */
export function ghostNest(rows, title) {
  if (!rows?.length) return null;
  const least = Math.min(...rows.map((row) => row.depth));
  return focusable("div", { class: "dlc-ghost", tabindex: 0, role: "group",
    "aria-label": `What ${title} would lead to` },
    h("ol", { "aria-label": `Loop nest after ${title}` }, ...rows.map((row) =>
      h("li", { class: `dlc-ghost-row dlc-${row.change}`, title: `${row.name} ${row.was}`.trim() },
        h("span", { class: "dlc-sign", "aria-hidden": "true", text: SIGNS[row.change] }),
        h("span", { class: "dlc-unseen", text: SPOKEN[row.change] }),
        h("span", { class: "dlc-chip-mark", style: {
          marginLeft: `${(row.depth - least) * INDENT}px`, background: paint(row.colors) } }),
        h("span", { class: "dlc-clip", text: row.name }),
        row.kind === "serial" ? null : h("span", { class: "dlc-pill", text: row.kind }),
        row.was ? h("span", { class: "dlc-soft", text: row.was }) : null,
        row.extent === null ? null : h("span", { class: "dlc-extent",
          text: typeof row.extent === "number" ? count(row.extent) : row.extent })))));
}

/** Scroll the nest so that its first change can be seen. */
export function showChange(root) {
  const nest = root.querySelector(".dlc-ghost");
  const changed = nest?.querySelector(".dlc-ghost-row:not(.dlc-same)");
  if (changed) nest.scrollTop = changed.offsetTop - changed.offsetHeight;
}
