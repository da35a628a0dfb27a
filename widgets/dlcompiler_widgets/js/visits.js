/*
 * What a step of an iteration space touches: the rules of `dlcompiler.views.loops.visits`.
 */

const MOST_POINTS = 4096;

// As in the loop IR, a division by 0 and its remainder are 0.
export const floorDiv = (a, b) => (b === 0 ? 0 : Math.floor(a / b));
const truncDiv = (a, b) => (b === 0 ? 0 : Math.trunc(a / b));
const truncMod = (a, b) => (b === 0 ? 0 : a % b);
const floorMod = (a, b) => (b === 0 ? 0 : a - b * floorDiv(a, b));
const OPERATIONS = {
  "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b,
  "//": floorDiv, "%": floorMod,
  truncdiv: truncDiv, truncmod: truncMod, min: Math.min, max: Math.max,
  "<": (a, b) => a < b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, ">=": (a, b) => a >= b,
  "==": (a, b) => a === b, "!=": (a, b) => a !== b,
  and: (a, b) => Boolean(a && b), or: (a, b) => Boolean(a || b),
  bitand: (a, b) => a & b, bitor: (a, b) => a | b, bitxor: (a, b) => a ^ b,
  shl: (a, b) => a << b, shr: (a, b) => a >> b,
};

/** The value of a formula where the loops have `values`. */
export function valueOf(formula, values) {
  if (typeof formula === "number") return formula;
  const [op, a, b] = formula;
  if (op === "v") return values[a];
  if (op === "not") return Number(!valueOf(a, values));
  return Number(OPERATIONS[op](valueOf(a, values), valueOf(b, values)));
}

/** The values of the first `depth` loops in a step, outermost first. */
export function loopValues(space, step) {
  const values = [];
  for (const { extent } of space.loops.slice(0, space.depth).reverse()) {
    values.unshift(step % extent);
    step = floorDiv(step, extent);
  }
  return values;
}

/** What a step touches in a tensor: points (each once), or only the indices of each dimension. */
export function touched(space, tensor, step) {
  const outer = loopValues(space, step);
  const inner = space.loops.slice(space.depth).map(({ extent }) => extent);
  const volume = inner.reduce((product, extent) => product * extent, 1);
  return volume <= MOST_POINTS ? points(space, tensor, outer, inner) : spans(space, tensor, outer);
}

/** Call `visit` for all combinations of values below `extents`, which stand in `values` from `at` on. */
function eachOf(extents, values, at, visit, n = 0) {
  if (n === extents.length) {
    visit();
    return;
  }
  for (let value = 0; value < extents[n]; value += 1) {
    values[at + n] = value;
    eachOf(extents, values, at, visit, n + 1);
  }
}

function points(space, tensor, outer, inner) {
  const found = new Map();
  const values = [...outer, ...inner.map(() => 0)];
  eachOf(inner, values, outer.length, () => {
    if (!space.conditions.every((guard) => valueOf(guard, values))) return;
    for (const access of tensor.accesses) {
      if (!access.conditions.every((guard) => valueOf(guard, values))) continue;
      const point = access.indices.map((index) => valueOf(index, values));
      found.set(point.join(), point);
    }
  });
  return { exact: true, points: [...found.values()] };
}

function spans(space, tensor, outer) {
  const found = tensor.shape.map(() => new Set());
  for (const access of tensor.accesses) {
    access.indices.forEach((index, n) => {
      for (const value of rangeOf(space, index, outer, tensor.shape[n])) found[n].add(value);
    });
  }
  return { exact: false, spans: found.map((span) => [...span]), isBox: isBox(space, tensor) };
}

/** Whether the dimensions are independent: no loop of the step moves two of them. */
function isBox(space, tensor) {
  const ways = new Set(tensor.accesses.map(({ indices }) => JSON.stringify(indices)));
  const guards = [...space.conditions, ...tensor.accesses.flatMap(({ conditions }) => conditions)];
  const loops = tensor.accesses[0].indices.flatMap((index) => [...loopsIn(index)])
    .filter((n) => n >= space.depth);
  const isSmall = loops.every((n) => space.loops[n].extent <= MOST_POINTS);
  return ways.size === 1 && !guards.length && isSmall && loops.length === new Set(loops).size;
}

function rangeOf(space, index, outer, size) {
  const used = [...loopsIn(index)].filter((n) => n >= space.depth);
  const extents = used.map((n) => space.loops[n].extent);
  if (extents.reduce((product, extent) => product * extent, 1) > MOST_POINTS) {
    return [...Array(size).keys()];
  }
  const values = [...outer, ...space.loops.slice(outer.length).map(() => 0)];
  const found = [], rest = extents.map(() => 0);
  eachOf(extents, rest, 0, () => {
    used.forEach((n, at) => { values[n] = rest[at]; });
    const value = valueOf(index, values);
    if (value >= 0 && value < size) found.push(value);
  });
  return found;
}

/** The numbers of the loops that a formula contains. */
export function loopsIn(formula) {
  if (typeof formula === "number") return new Set();
  if (formula[0] === "v") return new Set([formula[1]]);
  return new Set(formula.slice(1).flatMap((part) => [...loopsIn(part)]));
}
