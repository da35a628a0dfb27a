/*
 * What the steps of an iteration space touch, as products of small sets: the rules of
 * `dlcompiler.views.loops.earlier`. All steps before one are a few boxes of loop values.
 */

import { loopValues, loopsIn, valueOf } from "./visits.js";

const MOST_ENUMERATED = 16384;

/** Keeps the regions of boxes of loop values: from step to step, only the last box changes. */
export class Trail {
  constructor(space, tensor) {
    this.space = space;
    this.tensor = tensor;
    this.known = [];
  }

  /** What the steps before `step` touch. */
  before(step) {
    const values = loopValues(this.space, step);
    return values.flatMap((value, level) => {
      if (!value) return [];
      const prefix = values.slice(0, level + 1).join();
      if (this.known[level]?.prefix !== prefix) {
        const ranges = this.space.loops.map(({ extent }, n) => (n < level ? [values[n], values[n] + 1]
          : [0, n === level ? value : extent]));
        this.known[level] = { prefix, regions: regionsOf(this.space, this.tensor, ranges) };
      }
      return this.known[level].regions;
    });
  }
}

/** What one step touches. */
export function inStep(space, tensor, step) {
  const values = loopValues(space, step);
  const ranges = space.loops.map(({ extent }, n) => (n < space.depth
    ? [values[n], values[n] + 1] : [0, extent]));
  return regionsOf(space, tensor, ranges);
}

/** Whether an element is in a region. */
export function contains(region, element) {
  return region.parts.every(({ dims, keys }) => keys.has(dims.map((n) => element[n]).join()));
}

/** Whether two regions share an element; null where that is not known. */
export function intersects(a, b) {
  const same = a.parts.length === b.parts.length && a.parts.every((part, n) =>
    part.dims.join() === b.parts[n].dims.join());
  if (!same || !a.exact || !b.exact) return null;
  return a.parts.every((part, n) => [...part.keys].some((key) => b.parts[n].keys.has(key)));
}

function regionsOf(space, tensor, ranges) {
  return tensor.accesses.map((access) => regionOf(space, tensor, access, ranges))
    .filter((region) => region);
}

function regionOf(space, tensor, access, ranges) {
  const size = ([low, high]) => high - low;
  const formulas = [...access.indices, ...space.conditions, ...access.conditions];
  const count = access.indices.length;
  const parts = [];
  let exact = true;
  for (const group of connected(formulas, ranges)) {
    const dims = group.filter((n) => n < count);
    const loops = [...new Set(group.flatMap((n) => [...loopsIn(formulas[n])]))]
      .filter((n) => size(ranges[n]) > 1).sort((a, b) => a - b);
    if (loops.reduce((product, n) => product * size(ranges[n]), 1) > MOST_ENUMERATED) {
      exact = false;
      for (const n of dims) {
        parts.push(partOf([n], [...Array(tensor.shape[n]).keys()].map((at) => [at])));
      }
      continue;
    }
    const tests = group.filter((n) => n >= count).map((n) => formulas[n]);
    const found = pointsOf(dims.map((n) => formulas[n]), tests, loops, ranges);
    if (!found.length) return null;
    if (dims.length) parts.push(partOf(dims, found));
  }
  return { parts, exact };
}

function partOf(dims, values) {
  const unique = new Map(values.map((value) => [value.join(), value]));
  return { dims, values: [...unique.values()], keys: new Set(unique.keys()) };
}

function pointsOf(indices, tests, loops, ranges) {
  const values = ranges.map(([low]) => low), found = [];
  const visit = (at) => {
    if (at === loops.length) {
      if (tests.every((test) => valueOf(test, values))) {
        found.push(indices.map((index) => valueOf(index, values)));
      }
      return;
    }
    const [low, high] = ranges[loops[at]];
    for (let value = low; value < high; value += 1) {
      values[loops[at]] = value;
      visit(at + 1);
    }
  };
  visit(0);
  return found;
}

/** The formulas that share a loop with several values, directly or through others, together. */
function connected(formulas, ranges) {
  let groups = [];
  formulas.forEach((formula, number) => {
    const loops = new Set([...loopsIn(formula)].filter((n) => ranges[n][1] - ranges[n][0] > 1));
    const joined = groups.filter((group) => [...group.loops].some((n) => loops.has(n)));
    groups = groups.filter((group) => !joined.includes(group));
    const members = [number, ...joined.flatMap((group) => group.members)].sort((a, b) => a - b);
    groups.push({ members, loops: new Set([...loops, ...joined.flatMap((g) => [...g.loops])]) });
  });
  return groups.map(({ members }) => members);
}
