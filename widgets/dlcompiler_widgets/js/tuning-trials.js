/*
 * The trials as rows, and all that is known of the chosen one.
 */

import { button, count, focusable, focusItem, h, message, refill, roving } from "./dom.js";
import { programLine } from "./lines.js";
import { unpack } from "./shipment.js";

const ALL = "";

export class TrialsPane {
  constructor(app) {
    this.app = app;
    this.filter = focusable("select", { "data-key": "filter", "aria-label": "Outcomes shown",
      on: { change: () => app.send("filter", { outcome: this.filter.value }) } });
    this.pager = h("span", { class: "dlc-tuning-pager" });
    this.summary = h("span", { class: "dlc-soft" });
    this.headings = h("tr");
    this.rows = h("tbody");
    const table = h("table", { class: "dlc-table dlc-tuning-table" }, h("thead", {}, this.headings),
      this.rows);
    this.scroll = focusable("div", { class: "dlc-scroll", tabindex: 0, role: "region",
      "aria-label": "Trials" }, table);
    this.root = h("section", { class: "dlc-pane dlc-tuning-trials", "aria-label": "Trials" },
      h("div", { class: "dlc-head" }, h("h3", { text: "Trials" }), this.filter, this.pager,
        this.summary), this.scroll);
    roving(this.rows, { choose: (row) => app.choose(row.dataset.key),
      keys: { a: (row) => this.side("a", row), b: (row) => this.side("b", row) } });
  }

  side(side, row) {
    this.app.send("compare", { side, key: row.dataset.key });
  }

  draw(view, base) {
    const rows = unpack(base, view);
    if (!rows) return;
    this.drawFilter(view);
    this.drawPager(view);
    this.summary.textContent = view.summary;
    this.drawHeadings(view);
    const shown = rows.map((row) => ({ ...row, isNumber: view.columns.map((c) => c.is_number) }));
    refill(this.rows, shown, (row) => this.row(row));
    const items = [...this.rows.children];
    for (const node of items) this.mark(node, view);
    const home = items.find((node) => node === document.activeElement)
      ?? items.find((node) => node.dataset.key === view.chosen) ?? items[0];
    for (const node of items) node.tabIndex = node === home ? 0 : -1;
    if (view.chosen !== this.chosen && home?.dataset.key === view.chosen) this.reveal(home);
    this.chosen = view.chosen;
  }

  /** Scroll the rows, and not the notebook, to one that was chosen elsewhere. */
  reveal(row) {
    const head = this.headings.offsetHeight, { scroll } = this;
    const top = row.offsetTop - head;
    if (top >= scroll.scrollTop && top + row.offsetHeight + head <= scroll.scrollTop + scroll.clientHeight) return;
    scroll.scrollTop = top - (scroll.clientHeight - head) / 2;
  }

  drawFilter({ outcome, outcomes }) {
    const text = JSON.stringify([outcome, outcomes]);
    if (text === this.shownFilter || document.activeElement === this.filter) return;
    this.shownFilter = text;
    this.filter.replaceChildren(h("option", { value: ALL, text: "all outcomes" }),
      ...outcomes.map(([name, number]) =>
        h("option", { value: name, text: `${name} (${count(number)})` })));
    this.filter.value = outcome ?? ALL;
  }

  drawPager({ page, pages }) {
    const text = `${page} ${pages}`;
    if (text === this.shownPage) return;
    this.shownPage = text;
    const go = (to) => this.app.send("page", { page: to });
    this.pager.replaceChildren(...(pages < 2 ? [] : [
      button("page before", "‹", "Page before", () => go(page - 1), page === 0),
      h("span", { text: `${page + 1} of ${pages}` }),
      button("page behind", "›", "Next page", () => go(page + 1), page === pages - 1)]));
  }

  drawHeadings({ columns, by, is_descending: isDown }) {
    const text = `${by} ${isDown}`;
    if (text === this.shownOrder) return;
    this.shownOrder = text;
    const sign = isDown ? " ▾" : " ▴";
    this.headings.replaceChildren(...columns.map((column) => h("th", { scope: "col",
      "aria-sort": column.name !== by ? null : isDown ? "descending" : "ascending" },
    focusable("button", { type: "button", "data-key": `sort ${column.name}`,
      text: column.text + (column.name === by ? sign : ""),
      on: { click: () => this.app.send("sort", { by: column.name }) } }))),
    h("th", { scope: "col", text: "config" }));
  }

  row({ key, outcome, cells, config, isNumber }) {
    const node = focusable("tr", { "data-key": key, "data-item": true, "data-name": cells[0],
      "data-outcome": outcome === "ok" ? null : "failed", tabindex: -1,
      on: { click: () => {
        focusItem([...this.rows.children], node);
        this.app.choose(key);
      } } },
    ...cells.map((text, n) => h("td", { class: isNumber[n] ? "dlc-number" : null, text })),
    h("td", { class: "dlc-tuning-config", text: config, title: config }));
    return node;
  }

  mark(node, { chosen, a, b }) {
    const { key } = node.dataset;
    node.classList.toggle("dlc-tuning-chosen", key === chosen);
    if (key === chosen) node.setAttribute("aria-current", "true");
    else node.removeAttribute("aria-current");
    const sides = [key === a ? "A" : "", key === b ? "B" : ""].join("");
    if (sides) node.dataset.side = sides;
    else delete node.dataset.side;
  }
}

export class DetailPane {
  constructor(app) {
    this.app = app;
    this.root = h("section", { class: "dlc-pane dlc-tuning-detail", "aria-label": "Chosen trial" });
  }

  draw(view) {
    const text = JSON.stringify(view);
    if (text === this.shown) return; // it is sent with each push
    this.shown = text;
    if (!view.key) {
      this.root.replaceChildren(h("h3", { text: "Chosen trial" }), h("p", { class: "dlc-soft",
        text: "Choose a trial: click a sign in a picture, or a row. On a row, the keys a and b "
          + "take it as A and as B." }));
      return;
    }
    const act = (op, args) => () => this.app.send(op, args);
    this.root.replaceChildren(
      h("div", { class: "dlc-head" }, h("h3", { text: view.title }),
        pressed("a", "A", "Take it as A, to be compared", view.is_a, act("compare", { side: "a" })),
        pressed("b", "B", "Take it as B, to be compared", view.is_b, act("compare", { side: "b" })),
        pressed("code", "Code", "Its program", Boolean(view.code), act("code")),
        button("open", "Open in the Explorer", "Open it in the Explorer, as a branch", act("open"),
          !view.can_open)),
      facts([...view.facts, ...view.config]),
      ...(view.message ? [h("pre", { class: "dlc-tuning-message", text: view.message })] : []),
      ...(view.code ? [code(view.code)] : []));
  }
}

function pressed(key, text, label, isPressed, act) {
  return button(key, text, label, act, false, { "aria-pressed": String(isPressed) });
}

function facts(pairs) {
  return h("dl", { class: "dlc-tuning-facts" }, ...pairs.flatMap(([name, value]) => [
    h("dt", { text: name }), h("dd", { text: value })]));
}

function code({ lines, left_out: leftOut, error }) {
  if (error) return message(error);
  return focusable("div", { class: "dlc-lines", tabindex: 0, role: "region", "aria-label": "Program" },
    ...lines.map((line) => programLine(line)),
    leftOut ? h("div", { class: "dlc-soft", text: `… and ${leftOut} more lines` }) : null);
}
