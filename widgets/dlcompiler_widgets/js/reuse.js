/*
 * The next step of an iteration space that reads what an earlier step has read.
 */

import { Trail, contains, inStep, intersects } from "./earlier.js";
import { touched } from "./visits.js";

const MOST_SEARCHED = 20_000, MOST_EVALUATED = 2_000_000, MOST_POINTS = 4096;
const MOST_COMPARED = 64; // steps that are compared one by one where the trail is not known exactly

/**
 * The next step after `from` that reads again what any step before it has read, and the last step
 * `before` that did: null if that is more than `searched` steps ago. `step` is null if none is found
 * among the next `searched` steps; `isUnsure` says that some of them were too large to compare.
 */
export function nextReuse(space, from) {
  const volume = space.loops.slice(space.depth).reduce((product, { extent }) => product * extent, 1);
  const searched = Math.min(MOST_SEARCHED, Math.ceil(MOST_EVALUATED / Math.min(Math.max(volume, 1), MOST_POINTS)));
  const reads = space.tensors.filter((t) => !t.accesses.some((access) => access.is_write));
  const search = reads.map((tensor) => new Reads(space, tensor, from, searched));
  const end = Math.min(space.steps, from + 1 + searched);
  for (let step = from + 1; step < end; step += 1) {
    for (const each of search) {
      const found = each.again(step);
      if (found) return { ...found, step, searched };
    }
  }
  return { step: null, searched, isAll: end === space.steps,
    isUnsure: search.some(({ isUnsure }) => isUnsure) };
}

/** What the steps up to one have read of a tensor, and what those after it read. */
class Reads {
  constructor(space, tensor, from, searched) {
    Object.assign(this, { space, tensor, from, searched, last: new Map() });
    this.trail = new Trail(space, tensor);
    const regions = this.trail.before(from + 1);
    this.old = regions.filter(({ exact }) => exact);
    this.isUnsure = this.old.length < regions.length;
  }

  /** What a step reads again, and the last step that read it; null for nothing. */
  again(step) {
    const seen = touched(this.space, this.tensor, step);
    if (!seen.exact) return this.partAgain(step);
    for (const point of seen.points) {
      const known = this.last.get(point.join());
      if (known === undefined && !this.old.some((region) => contains(region, point))) continue;
      const has = (regions) => regions.some((region) => contains(region, point));
      return { what: `${this.tensor.name}[${point.join(", ")}]`,
        before: known ?? this.lastStep(this.from, has) };
    }
    for (const point of seen.points) this.last.set(point.join(), step);
    return null;
  }

  /** The same for a step of too many elements to list. */
  partAgain(step) {
    const own = inStep(this.space, this.tensor, step);
    const met = (regions) => {
      const found = own.flatMap((a) => regions.map((b) => intersects(a, b)));
      return found.includes(true) || (found.includes(null) ? null : false);
    };
    const isMet = met(this.trail.before(step));
    if (isMet === false) return null;
    const before = this.lastStep(step - 1, met, isMet ? this.searched : MOST_COMPARED);
    if (isMet || before !== null) return { what: `part of ${this.tensor.name}`, before };
    this.isUnsure = true;
    return null;
  }

  /** The last of `most` steps up to `from` whose regions fulfil a condition; null if none does. */
  lastStep(from, isMet, most = this.searched) {
    for (let step = from; step >= Math.max(from - most, 0); step -= 1) {
      if (isMet(inStep(this.space, this.tensor, step))) return step;
    }
    return null;
  }
}
