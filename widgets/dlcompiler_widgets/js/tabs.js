/*
 * Rows of tabs over pictures and texts. A row is one line: what has no room is scrolled to.
 */

import { button, h } from "./dom.js";

/** The tabs over pictures or texts; one is open. */
export function tabs(label, items, open, choose) {
  const bar = h("div", { class: "dlc-tabs", role: "tablist", "aria-label": label },
    ...items.map((item) => button(keyOf(item), item.text, item.title ?? item.text, () => choose(item.name), false, {
      role: "tab", "aria-selected": String(item.name === open), tabindex: item.name === open ? 0 : -1,
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

const keyOf = ({ name, key = `tab ${name}` }) => key;

/**
 * Show tabs in a place; none for a single one. Those with the same `group` are one tab, and while it
 * is open, a row of their own. The buttons stay if the tabs are the same.
 */
export function showTabs(place, label, items, open, choose) {
  place.rows ??= [0, 1].map(() => h("div", { class: "dlc-tab-row" }));
  if (items.length < 2) place.replaceChildren(); // a title without tabs has no line
  else if (!place.firstChild) place.append(...place.rows);
  const group = items.find(({ name }) => name === open)?.group;
  const inside = group ? items.filter((item) => item.group === group) : [];
  const first = group && inside.length > 1 ? inside[0].name : open;
  showRow(place.rows[0], label, folded(items), first, choose);
  showRow(place.rows[1], group ?? "", inside, open, choose);
}

/** The items of a row in which each group is one: it opens the first of the group. */
function folded(items) {
  const isGroup = ({ group }) => group && items.filter((each) => each.group === group).length > 1;
  return items
    .filter((item) => !isGroup(item) || items.find(({ group }) => group === item.group) === item)
    .map((item) => (isGroup(item) ? { name: item.name, text: item.group, key: `tabs ${item.group}` } : item));
}

function showRow(place, label, items, open, choose) {
  const text = JSON.stringify(items);
  if (place.tabsShown !== text) {
    place.tabsShown = text;
    const row = items.length > 1 ? tabs(label, items, open, choose) : null;
    place.replaceChildren(...(row ? [row] : []));
    place.tabOpen = null;
  }
  const row = place.firstChild;
  if (!row || place.tabOpen === open) return;
  place.tabOpen = open;
  [...row.children].forEach((tab, n) => {
    const isOpen = items[n].name === open;
    tab.setAttribute("aria-selected", String(isOpen));
    tab.tabIndex = isOpen ? 0 : -1;
    // In the next frame: asking for places now would lay out a page that is still being drawn.
    if (isOpen) requestAnimationFrame(() => reveal(row, tab));
  });
}

function reveal(row, tab) {
  const end = tab.offsetLeft + tab.offsetWidth - row.offsetLeft, start = tab.offsetLeft - row.offsetLeft;
  if (start < row.scrollLeft) row.scrollLeft = start;
  else if (end > row.scrollLeft + row.clientWidth) row.scrollLeft = end - row.clientWidth;
}
