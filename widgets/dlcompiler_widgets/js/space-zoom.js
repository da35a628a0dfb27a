/*
 * The part of a tensor that an iteration space shows: the rules of `dlcompiler.views.loops.space_zoom`.
 */

import { count } from "./dom.js";
import { inStep } from "./earlier.js";
import { floorDiv, loopValues, touched, valueOf } from "./visits.js";

const MOST_ZOOMED = 32, SIDE_PX = 120, LEAST_CELL = 4, MOST_CELL = 12;

/** The zooms in words: the whole, the tiles of the outer loops, single elements. */
export function zoomsOf({ loops, depth }) {
  const names = loops.slice(0, depth).map(({ name }) => name);
  return ["whole tensors", ...names.slice(0, -1).map((name) => `one iteration of ${name}`),
    ...(depth ? ["single elements"] : [])];
}

/** The first zoom at which the second step looks different from the first. */
export function firstZoom(space) {
  if (space.steps < 2) return 0;
  const last = zoomsOf(space).length - 1;
  const seen = space.tensors.map((tensor) => [0, 1].map((step) => touched(space, tensor, step)));
  const look = (n, zoom, step) => {
    const shown = windowOf(space, space.tensors[n], zoom, step);
    return JSON.stringify([shown, [...cellsOf(seen[n][step], shown)].sort()]);
  };
  for (let zoom = 0; zoom < last; zoom += 1) {
    if (space.tensors.some((_, n) => look(n, zoom, 0) !== look(n, zoom, 1))) return zoom;
  }
  return last;
}

/** The part of a tensor that is drawn at a zoom in a step. */
export function windowOf(space, tensor, zoom, step) {
  const [rows, columns] = [1, ...tensor.shape].slice(-2);
  if (!(zoom > 0 && zoom <= space.depth)) {
    const { grid } = tensor;
    return { top: 0, left: 0, rows: grid.rows, columns: grid.columns, block: grid.block, cell: grid.cell };
  }
  let box = zoom < space.depth ? tileOf(space, tensor, zoom, step) : null;
  if (!box) {
    const [row, column] = firstElement(space, tensor, step);
    const top = row - (row % MOST_ZOOMED), left = column - (column % MOST_ZOOMED);
    box = [top, left, Math.min(top + MOST_ZOOMED, rows), Math.min(left + MOST_ZOOMED, columns)];
  }
  const [top, left, bottom, right] = box;
  return { top, left, ...gridOf(bottom - top, right - left) };
}

function gridOf(rows, columns) {
  const block = [rows, columns].map((side) => {
    let size = 1;
    while (Math.ceil(side / size) > MOST_ZOOMED) size *= 2;
    return size;
  });
  const [down, across] = [Math.ceil(rows / block[0]), Math.ceil(columns / block[1])];
  const cell = Math.max(LEAST_CELL, Math.min(MOST_CELL, Math.floor(SIDE_PX / Math.max(down, across, 1))));
  return { rows: down, columns: across, block, cell };
}

/** What an iteration of the loop of a zoom touches: top, left, bottom, right. */
function tileOf(space, tensor, zoom, step) {
  const inside = space.loops.slice(zoom, space.depth).reduce((product, { extent }) => product * extent, 1);
  const regions = inStep({ ...space, depth: zoom }, tensor, floorDiv(step, inside));
  if (!regions.length) return null;
  const ends = tensor.shape.map(() => [Infinity, -Infinity]);
  for (const { dims, values } of regions.flatMap(({ parts }) => parts)) {
    for (const value of values) {
      dims.forEach((dim, n) => {
        const [low, high] = ends[dim];
        ends[dim] = [Math.min(low, value[n]), Math.max(high, value[n])];
      });
    }
  }
  const [[top, bottom], [left, right]] = [[0, 0], ...ends].slice(-2);
  return [top, left, bottom + 1, right + 1];
}

/** Row and column of the first access, whatever its conditions, kept in the tensor. */
function firstElement(space, tensor, step) {
  const values = [...loopValues(space, step), ...space.loops.slice(space.depth).map(() => 0)];
  const found = tensor.accesses[0].indices.map((index, n) =>
    Math.min(Math.max(valueOf(index, values), 0), tensor.shape[n] - 1));
  return [0, ...found].slice(-2);
}

function cellOf(row, column, { top, left, rows, columns, block: [down, across] }) {
  const y = floorDiv(row - top, down), x = floorDiv(column - left, across);
  return y >= 0 && y < rows && x >= 0 && x < columns ? y * columns + x : null;
}

/** The cells of a window that hold something touched, as `row * columns + column`. */
export function cellsOf(seen, window) {
  if (!seen.exact) {
    const [rows, columns] = [[0], ...seen.spans].slice(-2);
    return product(rows, columns, window);
  }
  const found = seen.points.map((point) => cellOf(...[0, ...point].slice(-2), window));
  return new Set(found.filter((cell) => cell !== null));
}

/** The cells of a window that hold an element of the regions of a tensor. */
export function regionCells(regions, rank, window) {
  return new Set(regions.flatMap((region) => [...cellsOfRegion(region, rank, window)]));
}

function cellsOfRegion({ parts }, rank, window) {
  const spans = { [-1]: [0] }; // a vector is one row
  for (const { dims, values } of parts) {
    const a = dims.indexOf(rank - 2), b = dims.indexOf(rank - 1);
    if (rank > 1 && a >= 0 && b >= 0) {
      const both = values.map((value) => cellOf(value[a], value[b], window));
      return new Set(both.filter((cell) => cell !== null));
    }
    dims.forEach((dim, n) => { spans[dim] = values.map((value) => value[n]); });
  }
  return product(spans[rank - 2], spans[rank - 1], window);
}

/** The cells of all combinations of rows and columns. */
function product(rows, columns, window) {
  const { top, left, block: [down, across] } = window;
  const below = new Set(rows.map((row) => floorDiv(row - top, down)));
  const beside = new Set(columns.map((column) => floorDiv(column - left, across)));
  const found = new Set();
  for (const y of below) {
    if (y < 0 || y >= window.rows) continue;
    for (const x of beside) if (x >= 0 && x < window.columns) found.add(y * window.columns + x);
  }
  return found;
}

/** The part of a tensor that is shown, in words; "" for all of it. */
export function partOf(tensor, { top, left, rows, columns, block }) {
  const [height, width] = [1, ...tensor.shape].slice(-2);
  const bottom = Math.min(top + rows * block[0], height), right = Math.min(left + columns * block[1], width);
  if (bottom - top === height && right - left === width) return "";
  const span = (name, low, high, size) => (size === 1 ? "" : high - low === 1
    ? `${name} ${count(low)}` : `${name}s ${count(low)}–${count(high - 1)}`);
  const across = tensor.shape.length === 1 ? "element" : "column";
  return [span("row", top, bottom, height), span(across, left, right, width)]
    .filter((text) => text).join(", ");
}
