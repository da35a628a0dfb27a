/*
 * Rows of tabs over pictures and texts. A row is one line: what has no room is scrolled to.
 */

import { button, h } from "./dom.js";

/** The tabs over pictures or texts; one is open. */
export function tabs(label, items, open, choose) {
  const bar = h("div", { class: "dlc-tabs", role: "tablist", "aria-label": label },
    ...items.map(({ name, text, title = text }) => button(`tab ${name}`, text, title, () => choose(name), false, {
      role: "tab", "aria-selected": String(name === open), tabindex: name === open ? 0 : -1,
      "data-item": true,
    })));
  bar.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const all = [...bar.children];
    const next = all[(all.indexOf(document.activeElement) + step + all.length) % all.length];
    next.focus();
    next.click();
  });
  return bar;
}

/** Show a row of tabs in a place; none for a single one. The buttons stay if the tabs are the same. */
export function showTabs(place, label, items, open, choose) {
  const text = JSON.stringify(items);
  if (place.tabsShown !== text) {
    place.tabsShown = text;
    const row = items.length > 1 ? tabs(label, items, open, choose) : null;
    place.replaceChildren(...(row ? [row] : []));
  }
  const row = place.firstChild;
  if (!row || place.tabOpen === open) return;
  place.tabOpen = open;
  for (const tab of row.children) {
    const isOpen = tab.dataset.key === `tab ${open}`;
    tab.setAttribute("aria-selected", String(isOpen));
    tab.tabIndex = isOpen ? 0 : -1;
    // In the next frame: asking for places now would lay out a page that is still being drawn.
    if (isOpen) requestAnimationFrame(() => reveal(row, tab));
  }
}

function reveal(row, tab) {
  const end = tab.offsetLeft + tab.offsetWidth - row.offsetLeft, start = tab.offsetLeft - row.offsetLeft;
  if (start < row.scrollLeft) row.scrollLeft = start;
  else if (end > row.scrollLeft + row.clientWidth) row.scrollLeft = end - row.clientWidth;
}
