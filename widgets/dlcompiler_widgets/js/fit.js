/*
 * How a scene fits its pane: its parts beside each other or below each other, and the least scale at
 * which it is shown, so that what must be scrolled anyway can be read.
 */

const LEAST = 0.75, MOST = 1.5; // scales
const CLEARLY = 1.2; // how much larger parts below each other must be
const SINGLE_PX = 480; // the room of a pane on its own, which is as high as its contents

/** Fit the scene that stands in the body of a pane; nothing if the body is not shown. */
export function fit(body, picture) {
  const frame = picture.parentElement, room = roomIn(body, frame);
  if (!room) return;
  const { whole, parts } = picture;
  const size = parts && isBetterBelow(whole, parts, room) ? below(picture) : beside(picture);
  frame.style.setProperty("--dlc-w", `${size.width}px`); // what style sheets fit it by
  frame.style.setProperty("--dlc-h", `${size.height}px`);
  const least = room.height / size.height < LEAST ? clamp(room.width / size.width, LEAST, 1) : LEAST;
  frame.style.setProperty("--dlc-least", least.toFixed(3));
  frame.style.setProperty("--dlc-most", clamp(room.width / size.width, least, MOST).toFixed(3));
}

const clamp = (value, least, most) => Math.min(Math.max(value, least), most);

/** What is left of the body beside the words above and below the picture. */
function roomIn(body, frame) {
  const figure = frame.parentElement, width = body.offsetWidth;
  if (!width) return null;
  if (body.closest(".dlc-single")) return { width, height: SINGLE_PX };
  const words = [...figure.children].filter((each) => each !== frame)
    .reduce((sum, each) => sum + each.offsetHeight, 0);
  return { width, height: Math.max(body.clientHeight - words, parseFloat(getComputedStyle(frame).minHeight) || 0) };
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
