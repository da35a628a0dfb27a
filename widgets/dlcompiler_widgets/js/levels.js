/*
 * How much is shown: a level, a preset of panes, and the way back to the first state.
 */

import { button, focusable, h } from "./dom.js";

/** A list of choices; items that follow each other with the same `group` stand under its name. */
export function choice(name, label, items, open, send) {
  const select = focusable("select", { "data-key": name, "aria-label": label, title: label,
    on: { change: () => {
      const { value } = select;
      select.value = open ?? ""; // what is chosen, until the answer is drawn
      send(name, { [name]: value });
    } } });
  for (const item of items) {
    const last = select.lastElementChild;
    const group = item.group && item.group !== last?.label ? h("optgroup", { label: item.group }) : last;
    if (group && group !== last) select.append(group);
    (item.group ? group : select).append(h("option", { value: item.name, text: item.text,
      title: item.about ?? null, selected: item.name === open }));
  }
  return h("label", { class: "dlc-choice" }, h("span", { class: "dlc-soft", text: label }), select);
}

/** The controls of the bar. */
export function levelControls({ level, levels, preset, presets }, send) {
  return [
    choice("level", "Level", levels, level, send),
    choice("preset", "Show", presets, preset, send),
    button("reset", "Reset", "Go to the first state; the history leads back", () => send("reset")),
  ];
}

/** Show the panes that are visible, and let the grid know which are not; return whether that is new. */
export function applyLayout(panes, grid, { panes: places, visible }) {
  let isNew = false;
  for (const [name, pane] of Object.entries(panes)) {
    if (places[name] !== "grid") continue; // it shows and hides itself
    const isHidden = !visible.includes(name);
    isNew ||= isHidden !== pane.root.hidden;
    pane.root.hidden = isHidden;
    grid.classList.toggle(`dlc-no-${name}`, isHidden);
  }
  return isNew;
}
