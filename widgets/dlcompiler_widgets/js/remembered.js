/*
 * What the page remembers for its user: sizes, collapsed panes, whether lines wrap.
 *
 * Storage can be forbidden (a file, a frame, a private window) and can hold what another page wrote:
 * then things are remembered as long as the page lives.
 */

const PLACE = "dlcompiler.explorer";

function stored() {
  try {
    const found = JSON.parse(localStorage.getItem(PLACE));
    return found && typeof found === "object" && !Array.isArray(found) ? found : {};
  } catch {
    return {};
  }
}

/** What one workbench remembers; what others change meanwhile does not move its panes. */
export class Memory {
  constructor() {
    this.values = new Map(Object.entries(stored()));
  }

  /** What is remembered under a name, if it is of the type wanted; null if not. */
  get(name, type) {
    const value = this.values.get(name);
    return typeof value === type && (type !== "number" || Number.isFinite(value)) ? value : null;
  }

  /** Remember a value; null forgets it. */
  set(name, value) {
    this.values.set(name, value);
    const all = new Map(Object.entries(stored()));
    if (value === null) all.delete(name);
    else all.set(name, value);
    try {
      localStorage.setItem(PLACE, JSON.stringify(Object.fromEntries(all)));
    } catch {
      // Not allowed here, or full.
    }
  }
}
