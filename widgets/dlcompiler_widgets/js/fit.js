/*
 * How a scene fits its pane: its parts beside each other or below each other, and the least scale at
 * which it is shown, so that what must be scrolled anyway can be read.
 */

const LEAST = 0.75, MOST = 1.5; // scales
const CLEARLY = 1.2; // how much larger parts below each other must be
const LEAST_PX = 300; // with less room, the pane scrolls
const SINGLE_PX = 480; // the room of a pane on its own, which is as high as its contents

/** Fit the scene that stands in the body of a pane; nothing if the body is not shown. */
export function fit(body, picture) {
  const frame = picture.parentElement;
  if (!body.offsetWidth) return;
  const room = roomIn(body, frame), { whole, parts } = picture;
  const size = parts && isBetterBelow(whole, parts, room) ? below(picture) : beside(picture);
  frame.style.setProperty("--dlc-w", `${size.width}px`); // what style sheets fit it by
  frame.style.setProperty("--dlc-h", `${size.height}px`);
  // What cannot be read if all of it is seen at once is moved: then it is not made smaller.
  const isHigh = room.height / size.height < LEAST;
  const least = isHigh ? clamp(room.width / size.width, LEAST, 1) : LEAST;
  const most = clamp(room.width / size.width, least, MOST);
  frame.style.setProperty("--dlc-least", least.toFixed(3));
  frame.style.setProperty("--dlc-most", most.toFixed(3));
  // Only one of pane and frame scrolls: with more words than fit, or a high picture, the pane.
  const scale = isHigh ? least : Math.min(most, room.height / size.height);
  if (room.isFilled || isHigh) frame.style.setProperty("--dlc-floor", `${scale * size.height}px`);
  else frame.style.removeProperty("--dlc-floor");
}

const clamp = (value, least, most) => Math.min(Math.max(value, least), most);

/**
 * The room for a picture: what the words above and below it leave. If these fill the pane, which
 * then scrolls, it is what those above leave.
 */
function roomIn(body, frame) {
  const width = body.offsetWidth;
  if (body.closest(".dlc-single")) return { width, height: SINGLE_PX, isFilled: false };
  const above = heightOf(body, frame, "previousElementSibling");
  const height = body.clientHeight - above - heightOf(body, frame, "nextElementSibling");
  const isFilled = height < Math.min(LEAST_PX, frame.firstElementChild.whole.height * LEAST);
  return { width, height: isFilled ? Math.max(body.clientHeight - above, 1) : height, isFilled };
}

/** The height of all that stands on one side of an element, within a body. */
function heightOf(body, element, side) {
  let sum = 0;
  for (let at = element; at !== body; at = at.parentElement) {
    const gap = parseFloat(getComputedStyle(at.parentElement).rowGap) || 0;
    for (let each = at[side]; each; each = each[side]) sum += each.offsetHeight + gap;
  }
  return sum;
}

const scaleOf = ({ width, height }, room) => Math.min(room.width / width, room.height / height, 1);

/** A picture that is too wide must be moved to be read; one that is too high only goes on below. */
function isBetterBelow(whole, parts, room) {
  return room.width / whole.width < LEAST
    || scaleOf(stacked(parts), room) > CLEARLY * scaleOf(whole, room);
}

function stacked(parts) {
  return { width: Math.max(...parts.map(({ width }) => width)),
    height: parts.reduce((sum, { height }) => sum + height, 0) };
}

function beside(picture) {
  for (const mark of picture.children) mark.removeAttribute("transform");
  return resize(picture, picture.whole);
}

/** Move the marks of each part below the part before it. */
function below(picture) {
  const marks = [...picture.children];
  let first = 0, top = 0;
  for (const { count, x, height } of picture.parts) {
    for (const mark of marks.slice(first, first + count)) {
      mark.setAttribute("transform", `translate(${-x} ${top})`);
    }
    first += count;
    top += height;
  }
  return resize(picture, stacked(picture.parts));
}

function resize(picture, { width, height }) {
  picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  return { width, height };
}
