/*
 * Elements. All text goes through textContent: a name can come from anywhere.
 */

const SVG = "http://www.w3.org/2000/svg";

/** Make an element: attributes by name, `on` for listeners, `text` for its text. */
export function h(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    } else if (name === "text") node.textContent = value;
    else if (name === "style") {
      for (const [property, of] of Object.entries(value)) {
        if (property.startsWith("--")) node.style.setProperty(property, of);
        else node.style[property] = of;
      }
    } else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/**
 * Make an element that takes the focus. Without the attribute, JupyterLab and Notebook 7 take
 * letters typed on it for their own commands: "b" would insert a cell.
 */
export function focusable(tag, attributes, ...children) {
  return h(tag, { "data-lm-suppress-shortcuts": "true", ...attributes }, ...children);
}

/** Make a button; a disabled one stays focusable, and does nothing. */
export function button(key, text, title, action, isDisabled = false, more = {}) {
  return focusable("button", {
    type: "button", "data-key": key, title, text, "aria-label": nameOf(text, title),
    "aria-disabled": isDisabled ? "true" : null,
    on: { click: () => !isDisabled && action() }, ...more,
  });
}

/** The name of a button: its title, which begins with the words on it if it has others. */
function nameOf(text, title) {
  const words = text.replace(/[^\p{L}\p{N} ]/gu, "").trim();
  return title.toLowerCase().includes(words.toLowerCase()) ? title : `${words}: ${title}`;
}

/** Make an element of an SVG picture. */
export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const NUMBERS = new Intl.NumberFormat("en");

export const count = (number) => NUMBERS.format(number);

/**
 * Show items in a container, and keep the nodes of those that it shows already: most steps change
 * a few lines of hundreds, and the focus stays where it is. `make` makes the node of an item;
 * items are the same if `textOf` them is.
 */
export function refill(container, items, make, textOf = JSON.stringify) {
  const kept = new Map();
  for (const [text, node] of container.shown ?? []) {
    if (!kept.has(text)) kept.set(text, []);
    kept.get(text).push(node);
  }
  container.shown = items.map((item) => {
    const text = textOf(item);
    return [text, kept.get(text)?.shift() ?? make(item)];
  });
  const nodes = new Set(container.shown.map(([, node]) => node));
  for (const child of [...container.childNodes]) if (!nodes.has(child)) child.remove();
  let at = container.firstChild;
  for (const node of nodes) {
    if (node === at) at = at.nextSibling;
    else container.insertBefore(node, at);
  }
}

/** Let the click that ends a drag choose nothing. */
export function swallowClick() {
  const swallow = (click) => { click.stopPropagation(); click.preventDefault(); };
  window.addEventListener("click", swallow, { capture: true, once: true });
  setTimeout(() => window.removeEventListener("click", swallow, { capture: true }));
}

/** The colours of an axis, side by side, as a CSS background. */
export function paint(colors) {
  if (colors.length < 2) return colors[0] ?? "transparent";
  const share = 100 / colors.length;
  const stops = colors.map((color, n) => `${color} ${n * share}% ${(n + 1) * share}%`);
  return `linear-gradient(to bottom, ${stops.join(", ")})`;
}

/** The heading of a column; one without text is no heading for screen readers. */
export function heading(text, more = {}) {
  return text ? h("th", { scope: "col", text, ...more }) : h("td", more);
}

/** A table under its columns; numbers stand right. */
export function table({ columns, rows }) {
  const cell = (value) => h("td", { class: typeof value === "number" ? "dlc-number" : null,
    text: typeof value === "number" ? count(value) : value ?? "" });
  return h("table", { class: "dlc-table" },
    h("thead", {}, h("tr", {}, ...columns.map((text) => heading(text)))),
    h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map(cell)))));
}

/** The numbers of a picture, to be opened; the table is made when it is. */
export function twin(makeTable) {
  const details = h("details", { class: "dlc-twin",
    on: { toggle: () => details.children.length > 1 || details.append(makeTable()) } },
  h("summary", { text: "Show as table", "data-lm-suppress-shortcuts": "true" }));
  return details;
}

/** Let arrows, Home, End and letters move among the items of a list that is one tab stop. */
export function roving(container, { choose, parentOf = null, childOf = null, keys = {} }) {
  container.addEventListener("keydown", (event) => {
    const items = [...container.querySelectorAll("[data-item]")];
    const at = items.indexOf(document.activeElement);
    if (at < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    const own = keys[event.key];
    const target = {
      ArrowDown: () => items[at + 1],
      ArrowUp: () => items[at - 1],
      Home: () => items[0],
      End: () => items[items.length - 1],
      ArrowLeft: () => parentOf && parentOf(items, at),
      ArrowRight: () => childOf && childOf(items, at),
      Enter: () => items[at],
      " ": () => items[at],
    }[event.key];
    const found = own ? null : target ? target() : typed(items, at, event.key);
    if (!own && !target && !found) return;
    event.preventDefault();
    event.stopPropagation();
    if (own) own(items[at]);
    if (!found) return;
    focusItem(items, found);
    choose(found, event.key);
  });
}

/** Give an item of a list the focus, and its one tab stop. */
export function focusItem(items, found) {
  for (const item of items) item.tabIndex = item === found ? 0 : -1;
  found.focus();
}

/** The next item whose name begins with a typed letter. */
function typed(items, at, key) {
  if (key.length !== 1 || !/\S/.test(key)) return null;
  const later = [...items.slice(at + 1), ...items.slice(0, at)];
  return later.find((item) => item.dataset.name?.toLowerCase().startsWith(key.toLowerCase()));
}

/** What came of an action, in words: text, tone, and further lines with their labels. */
export function message({ text, tone, details = [] }) {
  return h("div", { class: `dlc-message dlc-${tone}` },
    h("span", { text: (tone === "error" ? "✕ " : "") + text }),
    ...details.map(([label, value]) => h("span", { class: "dlc-soft" },
      h("b", { text: `${label} ` }), h("span", { text: value }))));
}
