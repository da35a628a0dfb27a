/* The boxes of a workbench: what `looks.py` asks of a page. */
(root) => {
  const SLACK = 2; // px: halves of pixels, and the descenders of letters
  const seen = (e) => e.checkVisibility({ visibilityProperty: true, opacityProperty: true })
    && e.getClientRects().length && !e.closest(".dlc-unseen");
  const name = (e) => {
    const words = (e.getAttribute("aria-label") ?? e.textContent).trim().slice(0, 40);
    return `${e.tagName.toLowerCase()}.${(e.getAttribute("class") ?? "").split(" ").join(".")} "${words}"`;
  };
  const all = [...root.querySelectorAll("*")].filter((e) => e instanceof HTMLElement && seen(e));
  const box = (e) => e.getBoundingClientRect();

  /* Text that an element hides: the tooltip of an ellipsis says the whole. */
  const cut = all.filter((e) => {
    const s = getComputedStyle(e);
    const wide = e.scrollWidth > e.clientWidth + SLACK, high = e.scrollHeight > e.clientHeight + SLACK;
    if (s.display === "inline") return false;
    const hidesX = wide && ["hidden", "clip"].includes(s.overflowX);
    const hidesY = high && ["hidden", "clip"].includes(s.overflowY);
    if (!hidesX && !hidesY) return false;
    const isSaid = s.textOverflow === "ellipsis" && hidesX && !hidesY && e.closest("[title]")?.title;
    return !isSaid && e.textContent.trim();
  }).map(name);

  /* What stands out of the box of its pane, of all that takes part in scrolling. */
  const outside = all.filter((e) => {
    const pane = e.closest(".dlc-pane, .dlc-popover");
    if (!pane || e === pane || ["auto", "scroll"].includes(getComputedStyle(pane).overflowY)) return false;
    for (let at = e.parentElement; at !== pane.parentElement; at = at.parentElement) {
      if (getComputedStyle(at).overflowX !== "visible" && at !== pane) return false;
    }
    const inner = box(e), outer = box(pane);
    return inner.right > outer.right + SLACK || inner.bottom > outer.bottom + SLACK;
  }).map(name);

  /* Controls and rows that a pane hides at its right: these panes are read from top to bottom. */
  const sideways = all.filter((e) => e.matches(".dlc-moves, .dlc-body, .dlc-states, .dlc-compare")
    && e.scrollWidth > e.clientWidth + SLACK).map(name);

  /* What a box without a scroll bar does not hold, over what comes after the box. */
  const spilt = all.filter((e) => {
    const next = e.nextElementSibling, s = getComputedStyle(e);
    if (!next || !seen(next) || s.overflowY !== "visible" || s.display === "inline") return false;
    if (!e.matches(".dlc-compare > *, .dlc-pane > *")) return false;
    return e.scrollHeight > e.clientHeight + SLACK && box(next).top >= box(e).bottom - SLACK;
  }).map(name);

  /* A box whose contents fill less than half of it, beside one in the same column that scrolls. */
  const panes = all.filter((e) => e.classList.contains("dlc-pane"));
  const scrolls = (pane) => [pane, ...pane.querySelectorAll("*")].some((e) =>
    ["auto", "scroll"].includes(getComputedStyle(e).overflowY) && e.scrollHeight > e.clientHeight + SLACK
    && seen(e));
  const filled = (pane) => {
    let bottom = box(pane).top;
    const walk = (e) => {
      if (!seen(e)) return;
      const isLeaf = e instanceof SVGElement || e instanceof HTMLCanvasElement
        || ["INPUT", "SELECT", "TEXTAREA", "BUTTON"].includes(e.tagName)
        || [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.textContent.trim());
      if (isLeaf) bottom = Math.max(bottom, Math.min(box(e).bottom, box(pane).bottom));
      else for (const child of e.children) walk(child);
    };
    walk(pane);
    return (bottom - box(pane).top) / box(pane).height;
  };
  const holder = (pane) => pane.closest(".dlc-column") ?? pane.parentElement;
  const isInColumnOf = (pane) => (other) => other !== pane && holder(other) === holder(pane)
    && box(other).left < box(pane).right && box(pane).left < box(other).right;
  const empty = panes.filter((pane) => filled(pane) < 0.5 && panes.filter(isInColumnOf(pane)).some(scrolls))
    .map((pane) => `${name(pane)}: ${Math.round(100 * filled(pane))} % filled`);

  /* Siblings that lie over each other, unless they are placed there. */
  const overlapping = [];
  for (const parent of [root, ...all]) {
    const flow = [...parent.children].filter((e) => e instanceof HTMLElement && seen(e)
      && !["absolute", "fixed", "sticky"].includes(getComputedStyle(e).position)
      && getComputedStyle(e).display !== "inline" && box(e).width > 1 && box(e).height > 1);
    for (let n = 1; n < flow.length; n += 1) {
      const a = box(flow[n - 1]), b = box(flow[n]);
      const x = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (x > SLACK && y > SLACK) overlapping.push(`${name(flow[n - 1])} and ${name(flow[n])}`);
    }
  }

  /* Words of pictures: cut by the edge of the picture, or over other words. */
  for (const picture of [...root.querySelectorAll("svg.dlc-scene")].filter(seen)) {
    const words = [...picture.querySelectorAll("text")].filter((e) => e.textContent.trim());
    const slack = SLACK * Math.max(1, picture.getScreenCTM().a), edge = box(picture);
    words.forEach((e, n) => {
      const a = box(e);
      if (a.right > edge.right + slack || a.left < edge.left - slack || a.bottom > edge.bottom + slack) cut.push(name(e));
      for (const other of words.slice(n + 1)) {
        const b = box(other);
        const x = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (x > slack && y > 0.3 * Math.min(a.height, b.height)) overlapping.push(`${name(e)} and ${name(other)}`);
      }
    });
  }

  const area = (e) => (e && seen(e) ? box(e).width * box(e).height : 0);
  const lines = root.querySelector(".dlc-lines");
  const rows = [...root.querySelectorAll(".dlc-headline [role=tablist]")].filter(seen)
    .map((row) => new Set([...row.children].map((tab) => Math.round(box(tab).top))).size);
  return {
    cut: [...cut, ...sideways], outside: [...outside, ...spilt], empty, overlapping,
    picture: area(root.querySelector(".dlc-picture")) / area(root),
    lines: lines && seen(lines) ? Math.floor(lines.clientHeight / parseFloat(getComputedStyle(lines).lineHeight)) : 0,
    tabRows: Math.max(0, ...rows),
    height: Math.round(box(root).height),
    wider: root.scrollWidth - root.clientWidth,
  };
}
